#include "wire/transport_params.h"

#include <stddef.h>
#include <string.h>

#include "wire/frame.h"

/* RFC 9000 section 18.2. */
enum {
    TP_ORIGINAL_DCID = 0x00,
    TP_MAX_IDLE_TIMEOUT = 0x01,
    TP_STATELESS_RESET_TOKEN = 0x02,
    TP_MAX_UDP_PAYLOAD_SIZE = 0x03,
    TP_INITIAL_MAX_DATA = 0x04,
    TP_INITIAL_MAX_STREAM_DATA_BIDI_LOCAL = 0x05,
    TP_INITIAL_MAX_STREAM_DATA_BIDI_REMOTE = 0x06,
    TP_INITIAL_MAX_STREAM_DATA_UNI = 0x07,
    TP_INITIAL_MAX_STREAMS_BIDI = 0x08,
    TP_INITIAL_MAX_STREAMS_UNI = 0x09,
    TP_ACK_DELAY_EXPONENT = 0x0a,
    TP_MAX_ACK_DELAY = 0x0b,
    TP_DISABLE_ACTIVE_MIGRATION = 0x0c,
    TP_PREFERRED_ADDRESS = 0x0d,
    TP_ACTIVE_CONNECTION_ID_LIMIT = 0x0e,
    TP_INITIAL_SCID = 0x0f,
    TP_RETRY_SCID = 0x10,
};

#define MAX_STREAMS (UINT64_C(1) << 60)

/* An integer parameter. One at its `absent` value is not sent; a received one must be in [least, most]. */
typedef struct {
    uint64_t id, absent, least, most;
    size_t offset;
    bool is_limit; /* of the server, remembered for 0-RTT data (RFC 9000 section 7.4.1) */
} integer;

#define AT(member) offsetof(xl_transport_params, member)
static const integer integers[] = {
    {TP_MAX_IDLE_TIMEOUT, 0, 0, XL_VARINT_MAX, AT(max_idle_timeout_ms), false},
    {TP_MAX_UDP_PAYLOAD_SIZE, 65527, 1200, XL_VARINT_MAX, AT(max_udp_payload_size), false},
    {TP_INITIAL_MAX_DATA, 0, 0, XL_VARINT_MAX, AT(initial_max_data), true},
    {TP_INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, 0, 0, XL_VARINT_MAX, AT(initial_max_stream_data_bidi_local), true},
    {TP_INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, 0, 0, XL_VARINT_MAX, AT(initial_max_stream_data_bidi_remote), true},
    {TP_INITIAL_MAX_STREAM_DATA_UNI, 0, 0, XL_VARINT_MAX, AT(initial_max_stream_data_uni), true},
    {TP_INITIAL_MAX_STREAMS_BIDI, 0, 0, MAX_STREAMS, AT(initial_max_streams_bidi), true},
    {TP_INITIAL_MAX_STREAMS_UNI, 0, 0, MAX_STREAMS, AT(initial_max_streams_uni), true},
    {TP_ACK_DELAY_EXPONENT, 3, 0, 20, AT(ack_delay_exponent), false},
    {TP_MAX_ACK_DELAY, 25, 0, (1 << 14) - 1, AT(max_ack_delay_ms), false},
    {TP_ACTIVE_CONNECTION_ID_LIMIT, 2, 2, XL_VARINT_MAX, AT(active_connection_id_limit), true},
    {XL_TP_MAX_DATAGRAM_FRAME, 0, 0, XL_VARINT_MAX, AT(max_datagram_frame_size), false},
};
#define INTEGERS (sizeof integers / sizeof integers[0])

static uint64_t *value_of(const xl_transport_params *tp, size_t i) {
    return (uint64_t *)((uintptr_t)tp + integers[i].offset);
}

void xl_transport_params_init(xl_transport_params *tp) {
    *tp = (xl_transport_params){0};
    for (size_t i = 0; i < INTEGERS; i++)
        *value_of(tp, i) = integers[i].absent;
}

void xl_transport_params_keep_limits(xl_transport_params *tp) {
    const xl_transport_params all = *tp;
    xl_transport_params_init(tp);
    for (size_t i = 0; i < INTEGERS; i++)
        if (integers[i].is_limit)
            *value_of(tp, i) = *value_of(&all, i);
}

bool xl_transport_params_are_reduced(const xl_transport_params *now, const xl_transport_params *before) {
    for (size_t i = 0; i < INTEGERS; i++)
        if (integers[i].is_limit && *value_of(now, i) < *value_of(before, i))
            return true;
    return false;
}

static void put_bytes(xl_writer *w, uint64_t id, const uint8_t *data, size_t len) {
    xl_write_varint(w, id);
    xl_write_varint(w, len);
    xl_write_bytes(w, data, len);
}

static void put_cid(xl_writer *w, bool present, uint64_t id, const xl_cid *cid) {
    if (present)
        put_bytes(w, id, cid->id, cid->len);
}

static void put_address(xl_writer *w, const xl_addr *a, size_t len) {
    static const xl_addr none;
    const xl_addr *given = a->family ? a : &none;
    xl_write_bytes(w, given->ip, len);
    xl_write_u8(w, (uint8_t)(given->port >> 8));
    xl_write_u8(w, (uint8_t)given->port);
}

static void put_preferred_address(xl_writer *w, const xl_preferred_address *p) {
    xl_write_varint(w, TP_PREFERRED_ADDRESS);
    xl_write_varint(w, 4 + 2 + 16 + 2 + 1 + p->cid.len + sizeof p->reset_token);
    put_address(w, &p->v4, 4);
    put_address(w, &p->v6, 16);
    xl_write_u8(w, p->cid.len);
    xl_write_bytes(w, p->cid.id, p->cid.len);
    xl_write_bytes(w, p->reset_token, sizeof p->reset_token);
}

static void put_integer(xl_writer *w, uint64_t id, uint64_t value, uint64_t absent) {
    if (value == absent)
        return;
    xl_write_varint(w, id);
    xl_write_varint(w, xl_varint_len(value));
    xl_write_varint(w, value);
}

/* The preferred version first. */
static void put_version_information(xl_writer *w, const xl_transport_params *tp) {
    const uint32_t known[] = {XL_VERSION_2, XL_VERSION_1};
    const size_t count = tp->versions == XL_VERSIONS_BOTH ? 2 : 1;
    xl_write_varint(w, XL_TP_VERSION_INFORMATION);
    xl_write_varint(w, 4 + 4 * count);
    xl_write_u32(w, tp->chosen_version);
    for (size_t i = 0; i < 2; i++)
        if (xl_versions_has(tp->versions, known[i]))
            xl_write_u32(w, known[i]);
}

size_t xl_transport_params_encode(const xl_transport_params *tp, uint8_t *buf, size_t cap) {
    xl_writer w = xl_writer_of(buf, cap);
    put_cid(&w, tp->has_original_dcid, TP_ORIGINAL_DCID, &tp->original_dcid);
    put_cid(&w, tp->has_initial_scid, TP_INITIAL_SCID, &tp->initial_scid);
    put_cid(&w, tp->has_retry_scid, TP_RETRY_SCID, &tp->retry_scid);
    if (tp->has_stateless_reset_token)
        put_bytes(&w, TP_STATELESS_RESET_TOKEN, tp->stateless_reset_token, sizeof tp->stateless_reset_token);
    for (size_t i = 0; i < INTEGERS; i++)
        put_integer(&w, integers[i].id, *value_of(tp, i), integers[i].absent);
    if (tp->disable_active_migration)
        put_bytes(&w, TP_DISABLE_ACTIVE_MIGRATION, NULL, 0);
    if (tp->has_preferred_address)
        put_preferred_address(&w, &tp->preferred_address);
    if (tp->has_min_ack_delay)
        put_integer(&w, XL_TP_MIN_ACK_DELAY, tp->min_ack_delay_us, UINT64_MAX);
    put_integer(&w, XL_TP_ENABLE_MULTIPATH, tp->enable_multipath, 0);
    if (tp->has_initial_max_path_id)
        put_integer(&w, XL_TP_INITIAL_MAX_PATH_ID, tp->initial_max_path_id, UINT64_MAX);
    put_integer(&w, XL_TP_QOE_FIELD, tp->qoe_field, 0);
    if (tp->has_version_information)
        put_version_information(&w, tp);
    if (tp->grease_quic_bit)
        put_bytes(&w, XL_TP_GREASE_QUIC_BIT, NULL, 0);
    if (tp->reserved_id)
        put_bytes(&w, tp->reserved_id, tp->reserved, tp->reserved_len);
    return w.failed ? 0 : (size_t)(w.p - buf);
}

/* The value of an integer parameter must fill the parameter exactly and be in [min, max]. */
static bool get_integer(xl_reader *value, uint64_t min, uint64_t max, uint64_t *out) {
    *out = xl_read_varint(value);
    return !value->failed && xl_reader_left(value) == 0 && *out >= min && *out <= max;
}

static bool get_switch(xl_reader *value, bool *out) {
    uint64_t v;
    if (!get_integer(value, 0, 1, &v))
        return false;
    *out = v == 1;
    return true;
}

static bool get_cid(xl_reader *value, bool *present, xl_cid *out) {
    size_t len = xl_reader_left(value);
    if (len > XL_MAX_CID_BYTES)
        return false;
    *present = true;
    out->len = (uint8_t)len;
    memcpy(out->id, xl_read_bytes(value, len), len);
    return true;
}

static bool get_reset_token(xl_reader *value, xl_transport_params *tp) {
    if (xl_reader_left(value) != sizeof tp->stateless_reset_token)
        return false;
    tp->has_stateless_reset_token = true;
    memcpy(tp->stateless_reset_token, xl_read_bytes(value, sizeof tp->stateless_reset_token),
           sizeof tp->stateless_reset_token);
    return true;
}

/* All zeros: no address (section 18.2). */
static xl_addr get_address(xl_reader *value, uint8_t family) {
    size_t len = family == 4 ? 4 : 16;
    xl_addr a = {.family = family};
    const uint8_t *ip = xl_read_bytes(value, len);
    if (ip)
        memcpy(a.ip, ip, len);
    a.port = (uint16_t)(xl_read_u8(value) << 8);
    a.port = (uint16_t)(a.port | xl_read_u8(value));
    xl_addr none = {.family = family};
    return a.port == 0 || xl_addr_same_host(&a, &none) ? (xl_addr){.family = 0} : a;
}

static bool get_preferred_address(xl_reader *value, xl_transport_params *tp) {
    xl_preferred_address *p = &tp->preferred_address;
    p->v4 = get_address(value, 4);
    p->v6 = get_address(value, 6);
    size_t cid_len = xl_read_u8(value);
    const uint8_t *id = xl_read_bytes(value, cid_len), *token = xl_read_bytes(value, sizeof p->reset_token);
    if (value->failed || xl_reader_left(value) > 0 || cid_len < 1 || cid_len > XL_MAX_CID_BYTES)
        return false;
    p->cid.len = (uint8_t)cid_len;
    memcpy(p->cid.id, id, cid_len);
    memcpy(p->reset_token, token, sizeof p->reset_token);
    tp->has_preferred_address = true;
    return true;
}

/* RFC 9368 section 4: 0 is not a version, and a client must list the version that it has chosen. */
static bool get_version_information(xl_reader *value, bool from_server, xl_transport_params *tp) {
    bool is_listed = from_server;
    tp->has_version_information = true;
    tp->chosen_version = xl_read_u32(value);
    bool ok = tp->chosen_version != 0;
    while (!value->failed && xl_reader_left(value) > 0) {
        const uint32_t version = xl_read_u32(value);
        ok &= version != 0;
        is_listed |= version == tp->chosen_version;
        tp->has_v1 |= version == XL_VERSION_1;
        tp->has_v2 |= version == XL_VERSION_2;
    }
    return ok && is_listed && !value->failed;
}

static bool is_server_only(uint64_t id) {
    return id == TP_ORIGINAL_DCID || id == TP_STATELESS_RESET_TOKEN || id == TP_PREFERRED_ADDRESS ||
           id == TP_RETRY_SCID;
}

static bool get_parameter(uint64_t id, xl_reader *value, bool from_server, xl_transport_params *tp) {
    for (size_t i = 0; i < INTEGERS; i++)
        if (integers[i].id == id)
            return get_integer(value, integers[i].least, integers[i].most, value_of(tp, i));
    switch (id) {
    case TP_ORIGINAL_DCID:
        return get_cid(value, &tp->has_original_dcid, &tp->original_dcid);
    case TP_INITIAL_SCID:
        return get_cid(value, &tp->has_initial_scid, &tp->initial_scid);
    case TP_RETRY_SCID:
        return get_cid(value, &tp->has_retry_scid, &tp->retry_scid);
    case TP_STATELESS_RESET_TOKEN:
        return get_reset_token(value, tp);
    case TP_PREFERRED_ADDRESS:
        return get_preferred_address(value, tp);
    case TP_DISABLE_ACTIVE_MIGRATION:
        tp->disable_active_migration = true;
        return xl_reader_left(value) == 0;
    case XL_TP_MIN_ACK_DELAY:
        tp->has_min_ack_delay = true;
        return get_integer(value, 0, XL_VARINT_MAX, &tp->min_ack_delay_us);
    case XL_TP_ENABLE_MULTIPATH:
        return get_switch(value, &tp->enable_multipath);
    case XL_TP_INITIAL_MAX_PATH_ID:
        tp->has_initial_max_path_id = true;
        return get_integer(value, 0, XL_PATH_ID_MAX, &tp->initial_max_path_id);
    case XL_TP_QOE_FIELD:
        return get_switch(value, &tp->qoe_field);
    case XL_TP_VERSION_INFORMATION:
        return get_version_information(value, from_server, tp);
    case XL_TP_GREASE_QUIC_BIT:
        tp->grease_quic_bit = true;
        return xl_reader_left(value) == 0;
    default:
        return true;
    }
}

/* Parameters seen so far: every known one, and a bounded number of unknown ones, more than an honest peer sends. */
typedef struct {
    uint64_t known; /* bit i: parameter i; bits above 31: extensions */
    uint64_t others[32];
    size_t other_count;
} seen_set;

static bool seen_before(seen_set *seen, uint64_t id) {
    unsigned bit = id <= TP_RETRY_SCID               ? (unsigned)id
                   : id == XL_TP_VERSION_INFORMATION ? 57
                   : id == XL_TP_GREASE_QUIC_BIT     ? 58
                   : id == XL_TP_MAX_DATAGRAM_FRAME  ? 59
                   : id == XL_TP_MIN_ACK_DELAY       ? 60
                   : id == XL_TP_INITIAL_MAX_PATH_ID ? 61
                   : id == XL_TP_ENABLE_MULTIPATH    ? 62
                   : id == XL_TP_QOE_FIELD           ? 63
                                                     : 64;
    if (bit < 64) {
        bool before = seen->known >> bit & 1;
        seen->known |= UINT64_C(1) << bit;
        return before;
    }
    for (size_t i = 0; i < seen->other_count; i++)
        if (seen->others[i] == id)
            return true;
    if (seen->other_count < sizeof seen->others / sizeof seen->others[0])
        seen->others[seen->other_count++] = id;
    return false;
}

uint64_t xl_transport_params_decode(const uint8_t *data, size_t len, bool from_server, xl_transport_params *out) {
    xl_transport_params_init(out);
    seen_set seen = {0};
    xl_reader r = xl_reader_of(data, len);
    while (xl_reader_left(&r) > 0) {
        uint64_t id = xl_read_varint(&r);
        uint64_t value_len = xl_read_varint(&r);
        if (r.failed || value_len > xl_reader_left(&r))
            return XL_QERR_TRANSPORT_PARAMETER;
        xl_reader value = xl_reader_of(xl_read_bytes(&r, (size_t)value_len), (size_t)value_len);
        if (seen_before(&seen, id) || (is_server_only(id) && !from_server) ||
            !get_parameter(id, &value, from_server, out))
            return XL_QERR_TRANSPORT_PARAMETER;
    }
    if (out->max_idle_timeout_ms > XL_IDLE_TIMEOUT_MAX_MS)
        out->max_idle_timeout_ms = XL_IDLE_TIMEOUT_MAX_MS;
    return out->has_min_ack_delay && out->min_ack_delay_us > 1000 * out->max_ack_delay_ms ? XL_QERR_TRANSPORT_PARAMETER
                                                                                          : 0;
}
