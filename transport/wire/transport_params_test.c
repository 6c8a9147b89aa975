#include <stdlib.h>
#include <string.h>
#include "tests/unit.h"
#include "wire/frame.h"
#include "wire/transport_params.h"

static uint64_t next_random(uint64_t *s) {
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(0x2545f4914f6cdd1d);
}

static xl_transport_params full_set(void) {
    xl_transport_params tp;
    xl_transport_params_init(&tp);
    tp.has_original_dcid = tp.has_initial_scid = tp.has_retry_scid = tp.has_stateless_reset_token = true;
    tp.original_dcid = (xl_cid){8, {1, 2, 3, 4, 5, 6, 7, 8}};
    tp.initial_scid = (xl_cid){0, {0}};
    tp.retry_scid = (xl_cid){20, {9, 9}};
    memset(tp.stateless_reset_token, 0x5a, 16);
    tp.has_preferred_address = true;
    tp.preferred_address = (xl_preferred_address){.v4 = {.family = 4, .ip = {192, 0, 2, 7}, .port = 0x1234},
                                                  .v6 = {.family = 6, .ip = {0x20, 1, 0xd, 0xb8}, .port = 443},
                                                  .cid = {5, {1, 2, 3, 4, 5}},
                                                  .reset_token = {6, 7, 8}};
    tp.max_datagram_frame_size = 65535;
    tp.has_min_ack_delay = true;
    tp.min_ack_delay_us = 1000;
    tp.max_idle_timeout_ms = 30000;
    tp.max_udp_payload_size = 1200;
    tp.initial_max_data = 16 << 20;
    tp.initial_max_stream_data_bidi_local = 6 << 20;
    tp.initial_max_stream_data_bidi_remote = 6 << 19;
    tp.initial_max_stream_data_uni = 77;
    tp.initial_max_streams_bidi = UINT64_C(1) << 60;
    tp.initial_max_streams_uni = 16;
    tp.ack_delay_exponent = 20;
    tp.max_ack_delay_ms = 16383;
    tp.disable_active_migration = true;
    tp.active_connection_id_limit = 12;
    tp.enable_multipath = true;
    tp.qoe_field = true;
    return tp;
}

static void assert_same(const xl_transport_params *a, const xl_transport_params *b) {
    assert_int_equal(a->has_original_dcid, b->has_original_dcid);
    assert_int_equal(a->has_initial_scid, b->has_initial_scid);
    assert_int_equal(a->has_retry_scid, b->has_retry_scid);
    assert_int_equal(a->has_stateless_reset_token, b->has_stateless_reset_token);
    assert_true(xl_cid_equal(&a->original_dcid, &b->original_dcid));
    assert_true(xl_cid_equal(&a->initial_scid, &b->initial_scid));
    assert_true(xl_cid_equal(&a->retry_scid, &b->retry_scid));
    assert_memory_equal(a->stateless_reset_token, b->stateless_reset_token, 16);
    assert_int_equal(a->has_preferred_address, b->has_preferred_address);
    assert_true(xl_addr_equal(&a->preferred_address.v4, &b->preferred_address.v4));
    assert_true(xl_addr_equal(&a->preferred_address.v6, &b->preferred_address.v6));
    assert_true(xl_cid_equal(&a->preferred_address.cid, &b->preferred_address.cid));
    assert_memory_equal(a->preferred_address.reset_token, b->preferred_address.reset_token, 16);
    assert_int_equal(a->max_datagram_frame_size, b->max_datagram_frame_size);
    assert_int_equal(a->has_min_ack_delay, b->has_min_ack_delay);
    assert_int_equal(a->min_ack_delay_us, b->min_ack_delay_us);
    assert_int_equal(a->max_idle_timeout_ms, b->max_idle_timeout_ms);
    assert_int_equal(a->max_udp_payload_size, b->max_udp_payload_size);
    assert_int_equal(a->initial_max_data, b->initial_max_data);
    assert_int_equal(a->initial_max_stream_data_bidi_local, b->initial_max_stream_data_bidi_local);
    assert_int_equal(a->initial_max_stream_data_bidi_remote, b->initial_max_stream_data_bidi_remote);
    assert_int_equal(a->initial_max_stream_data_uni, b->initial_max_stream_data_uni);
    assert_int_equal(a->initial_max_streams_bidi, b->initial_max_streams_bidi);
    assert_int_equal(a->initial_max_streams_uni, b->initial_max_streams_uni);
    assert_int_equal(a->ack_delay_exponent, b->ack_delay_exponent);
    assert_int_equal(a->max_ack_delay_ms, b->max_ack_delay_ms);
    assert_int_equal(a->disable_active_migration, b->disable_active_migration);
    assert_int_equal(a->active_connection_id_limit, b->active_connection_id_limit);
    assert_int_equal(a->enable_multipath, b->enable_multipath);
    assert_int_equal(a->qoe_field, b->qoe_field);
}

TEST(a_preferred_address_of_one_ip_version_has_zeros_for_the_other) {
    uint8_t buf[512];
    xl_transport_params in = full_set(), out;
    in.preferred_address.v4.family = 0;
    size_t len = xl_transport_params_encode(&in, buf, sizeof buf);
    assert_int_equal(xl_transport_params_decode(buf, len, true, &out), 0);
    assert_int_equal(out.preferred_address.v4.family, 0);
    assert_true(xl_addr_equal(&in.preferred_address.v6, &out.preferred_address.v6));
    assert_int_equal(xl_transport_params_decode(buf, len, false, &out), XL_QERR_TRANSPORT_PARAMETER);
}

TEST(a_min_ack_delay_above_the_max_is_an_error) {
    uint8_t buf[64];
    xl_transport_params in, out;
    xl_transport_params_init(&in);
    in.has_min_ack_delay = true;
    for (uint64_t us = 25000; us <= 25001; us++) {
        in.min_ack_delay_us = us;
        size_t len = xl_transport_params_encode(&in, buf, sizeof buf);
        assert_int_equal(xl_transport_params_decode(buf, len, true, &out),
                         us > 25000 ? XL_QERR_TRANSPORT_PARAMETER : 0);
    }
}

TEST(every_parameter_round_trips) {
    uint8_t buf[512];
    xl_transport_params in = full_set(), out;
    size_t len = xl_transport_params_encode(&in, buf, sizeof buf);
    assert_true(len > 0);
    assert_int_equal(xl_transport_params_decode(buf, len, true, &out), 0);
    assert_same(&in, &out);
    assert_int_equal(xl_transport_params_encode(&in, buf, len), len);
    for (size_t cap = 0; cap < len; cap++)
        assert_int_equal(xl_transport_params_encode(&in, buf, cap), 0);
}

TEST(absent_parameters_have_the_defaults_of_the_rfc) {
    xl_transport_params tp;
    assert_int_equal(xl_transport_params_decode(NULL, 0, false, &tp), 0);
    assert_int_equal(tp.max_udp_payload_size, 65527);
    assert_int_equal(tp.ack_delay_exponent, 3);
    assert_int_equal(tp.max_ack_delay_ms, 25);
    assert_int_equal(tp.active_connection_id_limit, 2);
    assert_int_equal(tp.initial_max_data, 0);
    assert_int_equal(tp.max_idle_timeout_ms, 0);
    assert_false(tp.enable_multipath || tp.qoe_field || tp.disable_active_migration || tp.has_initial_scid);
}

TEST(multipath_parameters_have_their_bytes) {
    uint8_t buf[32];
    xl_transport_params tp;
    xl_transport_params_init(&tp);
    tp.enable_multipath = tp.qoe_field = true;
    static const uint8_t expected[] = {0x80, 0, 0xba, 0xba, 1, 1, 0xae, 0x3a, 0x71, 0xc5, 1, 1};
    assert_int_equal(xl_transport_params_encode(&tp, buf, sizeof buf), sizeof expected);
    assert_memory_equal(buf, expected, sizeof expected);
}

TEST(the_longest_idle_timeout_is_still_a_time_in_microseconds) {
    static const uint8_t longest[] = {0x01, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    xl_transport_params tp;
    assert_int_equal(xl_transport_params_decode(longest, sizeof longest, false, &tp), 0);
    const uint64_t us = tp.max_idle_timeout_ms * 1000, year = UINT64_C(31536000000000);
    assert_int_equal(us / 1000, tp.max_idle_timeout_ms);
    assert_true(us > 100000 * year && us + year > us);
    static const uint8_t second[] = {0x01, 2, 0x43, 0xe8};
    assert_int_equal(xl_transport_params_decode(second, sizeof second, false, &tp), 0);
    assert_int_equal(tp.max_idle_timeout_ms, 1000);
}

typedef struct {
    size_t len;
    uint8_t bytes[60];
    bool server_ok, client_ok;
} vector;

TEST(limits_lengths_duplicates_and_roles_are_checked) {
    static const vector vectors[] = {
        {3, {0x0a, 1, 20}, true, true},
        {3, {0x0a, 1, 21}, false, false}, /* ack_delay_exponent */
        {4, {0x0b, 2, 0x7f, 0xff}, true, true},
        {6, {0x0b, 4, 0x80, 0, 0x40, 0}, false, false}, /* max_ack_delay 2^14 */
        {3, {0x0e, 1, 2}, true, true},
        {3, {0x0e, 1, 1}, false, false},                          /* active_connection_id_limit */
        {4, {0x03, 2, 0x44, 0xb0}, true, true},                   /* max_udp_payload_size 1200 */
        {4, {0x03, 2, 0x44, 0xaf}, false, false},                 /* 1199 */
        {10, {0x08, 8, 0xd0, 0, 0, 0, 0, 0, 0, 0}, true, true},   /* 2^60 streams */
        {10, {0x08, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1}, false, false}, /* one more */
        {10, {0x09, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1}, false, false},
        {10, {0x04, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, true, true},
        {4, {0x04, 2, 5, 5}, false, false},  /* value shorter than its parameter */
        {3, {0x04, 1, 0x40}, false, false},  /* value longer than its parameter */
        {2, {0x04, 0}, false, false},        /* no value */
        {4, {0x04, 2, 0x40, 5}, true, true}, /* not the shortest form: allowed here */
        {2, {0x0c, 0}, true, true},
        {3, {0x0c, 1, 0}, false, false},             /* disable_active_migration has no value */
        {6, {0x04, 1, 5, 0x04, 1, 5}, false, false}, /* twice */
        {6, {0x3f, 1, 5, 0x3f, 1, 5}, false, false}, /* twice, unknown */
        {6, {0x3f, 1, 5, 0x3e, 1, 5}, true, true},   /* unknown ones are skipped */
        {12, {0x80, 0, 0xba, 0xba, 1, 1, 0x80, 0, 0xba, 0xba, 1, 0}, false, false},
        {6, {0x80, 0, 0xba, 0xba, 1, 2}, false, false}, /* enable_multipath is 0 or 1 */
        {6, {0x80, 0, 0xba, 0xba, 1, 0}, true, true},
        {4, {0x00, 2, 1, 2}, true, false}, /* original_destination_connection_id */
        {4, {0x10, 2, 1, 2}, true, false}, /* retry_source_connection_id */
        {4, {0x0f, 2, 1, 2}, true, true},  /* initial_source_connection_id */
        {23, {0x0f, 21, 0}, false, false}, /* CID over 20 bytes */
        {18, {0x02, 16, 0}, true, false},  /* stateless_reset_token */
        {17, {0x02, 15, 0}, false, false},
        {2 + 45, {0x0d, 45, [26] = 4}, true, false}, /* preferred_address with a CID of 4 bytes */
        {2 + 44, {0x0d, 44, [26] = 4}, false, false},
        {2 + 46, {0x0d, 46, [26] = 4}, false, false},
        {2 + 41, {0x0d, 41, [26] = 0}, false, false}, /* CID of no bytes */
        {1, {0x04}, false, false},
        {2, {0x04, 1}, false, false},
        {2, {0x3f, 1}, false, false},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        xl_transport_params tp;
        const vector *v = &vectors[i];
        uint64_t server = xl_transport_params_decode(v->bytes, v->len, true, &tp);
        uint64_t client = xl_transport_params_decode(v->bytes, v->len, false, &tp);
        if (server != (v->server_ok ? 0 : XL_QERR_TRANSPORT_PARAMETER) ||
            client != (v->client_ok ? 0 : XL_QERR_TRANSPORT_PARAMETER))
            fail_msg("vector %zu: from server %d, from client %d", i, (int)server, (int)client);
    }
}

/* Also behind many unknown ones. */
TEST(no_parameter_that_is_known_comes_twice) {
    static const struct {
        uint64_t id;
        uint8_t value[8];
        size_t len;
    } twice[] = {{XL_TP_VERSION_INFORMATION, {0, 0, 0, 1, 0, 0, 0, 1}, 8}, {XL_TP_GREASE_QUIC_BIT, {0}, 0}};
    for (size_t i = 0; i < 2; i++) {
        uint8_t buf[512];
        xl_transport_params out;
        xl_writer w = xl_writer_of(buf, sizeof buf);
        for (uint64_t unknown = 0; unknown < 40; unknown++) {
            xl_write_varint(&w, 0x4000 + unknown);
            xl_write_varint(&w, 0);
        }
        for (int k = 0; k < 2; k++) {
            assert_int_equal(0, xl_transport_params_decode(buf, (size_t)(w.p - buf), true, &out));
            xl_write_varint(&w, twice[i].id);
            xl_write_varint(&w, twice[i].len);
            xl_write_bytes(&w, twice[i].value, twice[i].len);
        }
        assert_int_equal(XL_QERR_TRANSPORT_PARAMETER, xl_transport_params_decode(buf, (size_t)(w.p - buf), true, &out));
    }
}

TEST(truncation_is_refused_or_ends_between_parameters) {
    uint8_t buf[512];
    xl_transport_params in = full_set(), out;
    size_t len = xl_transport_params_encode(&in, buf, sizeof buf);
    size_t boundary = 0;
    for (size_t n = 0; n < len; n++) {
        if (n > boundary + 1 && boundary < len) { /* walk: id, length, value */
            xl_reader r = xl_reader_of(buf + boundary, len - boundary);
            xl_read_varint(&r);
            size_t value = (size_t)xl_read_varint(&r);
            size_t end = (size_t)(r.p - buf) + value;
            if (n >= end)
                boundary = end;
        }
        uint8_t *copy = malloc(n + 1);
        memcpy(copy, buf, n);
        uint64_t expected = n == boundary ? 0 : XL_QERR_TRANSPORT_PARAMETER;
        assert_int_equal(xl_transport_params_decode(copy, n, true, &out), expected);
        free(copy);
    }
}

TEST(random_bytes_never_crash_the_decoder) {
    uint64_t seed = 1;
    size_t accepted = 0;
    for (int i = 0; i < 100000; i++) {
        size_t len = next_random(&seed) % 60;
        uint8_t *data = malloc(len + 1);
        for (size_t k = 0; k < len; k++)
            data[k] = (uint8_t)(next_random(&seed) >> 40) & (i % 2 ? 0x1f : 0xff);
        xl_transport_params tp;
        uint64_t error = xl_transport_params_decode(data, len, i % 4 < 2, &tp);
        assert_true(error == 0 || error == XL_QERR_TRANSPORT_PARAMETER);
        if (error == 0) {
            accepted++;
            assert_true(tp.ack_delay_exponent <= 20 && tp.max_ack_delay_ms < 1 << 14);
            assert_true(tp.active_connection_id_limit >= 2 && tp.max_udp_payload_size >= 1200);
            assert_true(tp.original_dcid.len <= 20 && tp.initial_scid.len <= 20 && tp.retry_scid.len <= 20);
        }
        free(data);
    }
    assert_true(accepted > 1000);
}

TEST(initial_max_path_id_has_32_bits) {
    xl_transport_params tp, back;
    uint8_t buf[64];
    for (uint64_t max = 0; max <= XL_PATH_ID_MAX; max += XL_PATH_ID_MAX / 3) {
        xl_transport_params_init(&tp);
        tp.has_initial_max_path_id = true;
        tp.initial_max_path_id = max;
        size_t n = xl_transport_params_encode(&tp, buf, sizeof buf);
        assert_int_equal(xl_transport_params_decode(buf, n, false, &back), 0);
        assert_true(back.has_initial_max_path_id);
        assert_int_equal(back.initial_max_path_id, max);
    }
    const uint8_t too_great[] = {0x3e, 8, 0xc0, 0, 0, 1, 0, 0, 0, 0};
    assert_int_equal(xl_transport_params_decode(too_great, sizeof too_great, true, &back), XL_QERR_TRANSPORT_PARAMETER);
    const uint8_t twice[] = {0x3e, 1, 2, 0x3e, 1, 2};
    assert_int_equal(xl_transport_params_decode(twice, sizeof twice, true, &back), XL_QERR_TRANSPORT_PARAMETER);
    xl_transport_params_init(&tp);
    assert_false(tp.has_initial_max_path_id);
}

/* RFC 9000 section 7.4.2. */
TEST(parameters_that_are_not_known_are_ignored) {
    const uint8_t bytes[] = {0x04, 0x01, 0x07, 0x7a, 0xbc, 0x03, 1, 2, 3, 0x08, 0x01, 0x09};
    xl_transport_params out;
    assert_int_equal(0, xl_transport_params_decode(bytes, sizeof bytes, false, &out));
    assert_int_equal(out.initial_max_data, 7);
    assert_int_equal(out.initial_max_streams_bidi, 9);
}

TEST_MAIN(NULL, NULL)
