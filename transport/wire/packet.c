#include "wire/packet.h"

#include <assert.h>
#include <string.h>

enum {
    LONG_HEADER = 0x80,
    FIXED_BIT = 0x40,
    RETRY_TAG_BYTES = 16,
    USUAL_CID_BYTES = 8, /* length of our CIDs, which are compared and copied as one word */
};

bool xl_versions_has(xl_versions versions, uint32_t version) {
    return (version == XL_VERSION_1 && versions != XL_VERSIONS_2) ||
           (version == XL_VERSION_2 && versions != XL_VERSIONS_1);
}

bool xl_cid_equal(const xl_cid *a, const xl_cid *b) {
    if (a->len != b->len)
        return false;
    return a->len == USUAL_CID_BYTES ? memcmp(a->id, b->id, USUAL_CID_BYTES) == 0 : memcmp(a->id, b->id, a->len) == 0;
}

/* Reads a CID with its length byte. RFC 9000 section 17.2 allows 20 bytes; the invariants would allow 255. */
static bool read_cid(xl_reader *r, xl_cid *cid) {
    size_t n = xl_read_u8(r);
    const uint8_t *id = xl_read_bytes(r, n);
    if (!id || n > XL_MAX_CID_BYTES)
        return false;
    cid->len = (uint8_t)n;
    memcpy(cid->id, id, n);
    return true;
}

void xl_packet_put_cid(xl_writer *w, const xl_cid *cid) {
    xl_write_u8(w, cid->len);
    xl_write_bytes(w, cid->id, cid->len);
}

static int parse_short(const uint8_t *data, size_t len, size_t dcid_len, xl_packet_header *out) {
    if (dcid_len > XL_MAX_CID_BYTES || len <= 1 + dcid_len)
        return -1;
    out->type = XL_PACKET_1RTT;
    out->version = XL_VERSION_1;
    out->dcid.len = (uint8_t)dcid_len;
    if (dcid_len == USUAL_CID_BYTES)
        memcpy(out->dcid.id, data + 1, USUAL_CID_BYTES); /* constant length: no call */
    else
        memcpy(out->dcid.id, data + 1, dcid_len);
    out->scid.len = 0;
    out->token = NULL;
    out->token_len = 0;
    out->pn_offset = 1 + dcid_len;
    out->total_len = len;
    return 0;
}

/* Version Negotiation, section 17.2.1: the rest of the datagram is the list of versions. */
static int parse_version_negotiation(xl_reader *r, xl_packet_header *out) {
    out->type = XL_PACKET_VERSION_NEGOTIATION;
    out->token_len = xl_reader_left(r);
    if (out->token_len == 0 || out->token_len % 4 != 0)
        return -1;
    out->token = xl_read_bytes(r, out->token_len);
    return 0;
}

/* Retry, section 17.2.5: token, then the integrity tag. A client must discard one with an empty token. */
static int parse_retry(xl_reader *r, size_t len, xl_packet_header *out) {
    out->type = XL_PACKET_RETRY;
    if (xl_reader_left(r) <= RETRY_TAG_BYTES)
        return -1;
    out->token_len = xl_reader_left(r) - RETRY_TAG_BYTES;
    out->token = xl_read_bytes(r, out->token_len);
    out->pn_offset = len - RETRY_TAG_BYTES;
    return 0;
}

/* Initial, 0-RTT, Handshake: [token], Length, packet number. */
static int parse_numbered(xl_reader *r, const uint8_t *data, xl_packet_header *out) {
    if (out->type == XL_PACKET_INITIAL) {
        uint64_t token_len = xl_read_varint(r);
        if (token_len > xl_reader_left(r))
            return -1;
        out->token_len = (size_t)token_len;
        out->token = xl_read_bytes(r, out->token_len);
    }
    uint64_t length = xl_read_varint(r);
    if (r->failed || length == 0 || length > xl_reader_left(r))
        return -1;
    out->pn_offset = (size_t)(r->p - data);
    out->total_len = out->pn_offset + (size_t)length;
    return 0;
}

/* Bits 4 and 5 of the first byte: RFC 9000 section 17.2, RFC 9369 section 3.2. */
static const xl_packet_type types_v1[4] = {XL_PACKET_INITIAL, XL_PACKET_0RTT, XL_PACKET_HANDSHAKE, XL_PACKET_RETRY};
static const xl_packet_type types_v2[4] = {XL_PACKET_RETRY, XL_PACKET_INITIAL, XL_PACKET_0RTT, XL_PACKET_HANDSHAKE};

static uint8_t type_bits(uint32_t version, xl_packet_type type) {
    const xl_packet_type *types = version == XL_VERSION_2 ? types_v2 : types_v1;
    uint8_t bits = 0;
    while (bits < 3 && types[bits] != type)
        bits++;
    return bits;
}

int xl_packet_parse(const uint8_t *data, size_t len, size_t short_dcid_len, xl_packet_header *out) {
    if (!data || len == 0)
        return -1;
    if (!(data[0] & LONG_HEADER)) {
        out->has_quic_bit = data[0] & FIXED_BIT;
        return parse_short(data, len, short_dcid_len, out);
    }
    memset(out, 0, sizeof *out);
    out->has_quic_bit = data[0] & FIXED_BIT;
    xl_reader r = xl_reader_of(data, len);
    uint8_t first = xl_read_u8(&r);
    out->version = xl_read_u32(&r);
    if (!read_cid(&r, &out->dcid) || !read_cid(&r, &out->scid))
        return -1;
    out->total_len = len;
    /* The fixed bit belongs to versions 1 and 2, not to the invariants (RFC 8999). */
    if (out->version == 0)
        return parse_version_negotiation(&r, out);
    if (out->version != XL_VERSION_1 && out->version != XL_VERSION_2) {
        out->type = XL_PACKET_OTHER_VERSION;
        return 0;
    }
    out->type = (out->version == XL_VERSION_2 ? types_v2 : types_v1)[first >> 4 & 3];
    if (out->type == XL_PACKET_RETRY)
        return parse_retry(&r, len, out);
    return parse_numbered(&r, data, out);
}

static void write_packet_number(xl_writer *w, uint64_t pn, size_t pn_len) {
    for (size_t i = pn_len; i-- > 0;)
        xl_write_u8(w, (uint8_t)(pn >> 8 * i));
}

/* RFC 8999 section 5.1. */
static void put_invariants(xl_writer *w, int first, uint32_t version, const xl_cid *dcid, const xl_cid *scid) {
    xl_write_u8(w, (uint8_t)(LONG_HEADER | FIXED_BIT | first));
    xl_write_u32(w, version);
    xl_packet_put_cid(w, dcid);
    xl_packet_put_cid(w, scid);
}

void xl_packet_put_long(xl_writer *w, uint32_t version, xl_packet_type type, const xl_cid *dcid, const xl_cid *scid,
                        const uint8_t *token, size_t token_len, uint64_t pn, size_t pn_len, uint8_t *packet_start,
                        size_t *length_offset) {
    assert(type == XL_PACKET_INITIAL || type == XL_PACKET_0RTT || type == XL_PACKET_HANDSHAKE);
    assert(pn_len >= 1 && pn_len <= 4);
    put_invariants(w, type_bits(version, type) << 4 | (int)(pn_len - 1), version, dcid, scid);
    if (type == XL_PACKET_INITIAL) {
        xl_write_varint(w, token_len);
        xl_write_bytes(w, token, token_len);
    }
    *length_offset = (size_t)(w->p - packet_start);
    xl_write_varint2(w, 0);
    write_packet_number(w, pn, pn_len);
}

void xl_packet_set_length(uint8_t *packet, size_t length_offset, size_t length) {
    assert(length < 1 << 14);
    packet[length_offset] = (uint8_t)(0x40 | length >> 8);
    packet[length_offset + 1] = (uint8_t)length;
}

void xl_packet_put_short(xl_writer *w, const xl_cid *dcid, bool spin, bool key_phase, uint64_t pn, size_t pn_len) {
    assert(pn_len >= 1 && pn_len <= 4);
    xl_write_u8(w, (uint8_t)(FIXED_BIT | spin << 5 | key_phase << 2 | (int)(pn_len - 1)));
    if (dcid->len == USUAL_CID_BYTES)
        xl_write_bytes(w, dcid->id, USUAL_CID_BYTES); /* constant length: no call */
    else
        xl_write_bytes(w, dcid->id, dcid->len);
    write_packet_number(w, pn, pn_len);
}

void xl_packet_put_retry(xl_writer *w, uint32_t version, const xl_cid *dcid, const xl_cid *scid, const uint8_t *token,
                         size_t token_len, uint8_t random) {
    put_invariants(w, type_bits(version, XL_PACKET_RETRY) << 4 | (random & 0x0f), version, dcid, scid);
    xl_write_bytes(w, token, token_len);
}

size_t xl_packet_put_version_negotiation(uint8_t *buf, size_t cap, const xl_cid *dcid, const xl_cid *scid,
                                         xl_versions versions, uint8_t random) {
    xl_writer w = xl_writer_of(buf, cap);
    put_invariants(&w, random & 0x3f, 0, dcid, scid);
    if (xl_versions_has(versions, XL_VERSION_2))
        xl_write_u32(&w, XL_VERSION_2);
    if (xl_versions_has(versions, XL_VERSION_1))
        xl_write_u32(&w, XL_VERSION_1);
    /* 0x?a?a?a?a is reserved to exercise negotiation (section 15). */
    xl_write_u32(&w, ((random & 0xf0u) | 0x0au) * 0x01010101u);
    return w.failed ? 0 : (size_t)(w.p - buf);
}

size_t xl_packet_number_len(uint64_t pn, uint64_t largest_acked) {
    /* UINT64_MAX wraps to the number before 0. Section 17.1: the encoding must distinguish more than twice as many
     * numbers as lie between the two. */
    uint64_t unacked = pn - largest_acked;
    if (unacked < UINT64_C(1) << 7)
        return 1;
    if (unacked < UINT64_C(1) << 15)
        return 2;
    if (unacked < UINT64_C(1) << 23)
        return 3;
    return 4;
}

uint64_t xl_packet_number_decode(uint64_t largest, uint64_t truncated, size_t pn_len) {
    uint64_t expected = largest + 1; /* UINT64_MAX wraps to 0 */
    uint64_t window = UINT64_C(1) << 8 * pn_len;
    uint64_t half = window / 2;
    uint64_t candidate = (expected & ~(window - 1)) | (truncated & (window - 1));
    if (candidate + half <= expected && candidate < (UINT64_C(1) << 62) - window)
        return candidate + window;
    bool beyond_space = candidate > XL_VARINT_MAX; /* only if the space is used up: packet numbers end at 2^62 - 1 */
    if ((candidate > expected + half || beyond_space) && candidate >= window)
        return candidate - window;
    return candidate;
}
