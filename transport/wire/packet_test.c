#include <stdlib.h>
#include <string.h>
#include "tests/unit.h"
#include "wire/packet.h"

static const xl_cid dcid = {8, {0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08}};
static const xl_cid scid = {5, {1, 2, 3, 4, 5}};

/* xorshift64*: seeded, so that a failure can be repeated. */
static uint64_t next_random(uint64_t *s) {
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(0x2545f4914f6cdd1d);
}

TEST(packet_number_lengths_follow_rfc9000_appendix_a2) {
    assert_int_equal(xl_packet_number_len(0xac5c02, 0xabe8b3), 2);
    assert_int_equal(xl_packet_number_len(0xace8fe, 0xabe8b3), 3);
    assert_int_equal(xl_packet_number_len(0, UINT64_MAX), 1);
    assert_int_equal(xl_packet_number_len(126, UINT64_MAX), 1);
    assert_int_equal(xl_packet_number_len(127, UINT64_MAX), 2);
    assert_int_equal(xl_packet_number_len(UINT64_C(1) << 40, UINT64_MAX), 4);
}

TEST(packet_numbers_decode_as_in_rfc9000_appendix_a3) {
    assert_int_equal(xl_packet_number_decode(0xa82f30ea, 0x9b32, 2), 0xa82f9b32);
    assert_int_equal(xl_packet_number_decode(UINT64_MAX, 0, 1), 0);
    assert_int_equal(xl_packet_number_decode(UINT64_MAX, 200, 1), 200);
    assert_int_equal(xl_packet_number_decode(254, 0, 1), 256);
    assert_int_equal(xl_packet_number_decode(256, 0xff, 1), 255);
    /* Exactly half a window from the expected 384 on either side: the later one. */
    assert_int_equal(xl_packet_number_decode(383, 0x00, 1), 512);
    assert_int_equal(xl_packet_number_decode(255, 0x80, 1), 384);
    /* The result stays within the number space. */
    assert_true(xl_packet_number_decode(XL_VARINT_MAX - 1, 0xff, 1) == XL_VARINT_MAX);
    assert_true(xl_packet_number_decode(XL_VARINT_MAX, 0x00, 1) <= XL_VARINT_MAX);
}

TEST(every_packet_number_sent_is_decoded_whatever_was_received) {
    uint64_t seed = 7;
    for (int i = 0; i < 100000; i++) {
        uint64_t acked = next_random(&seed) >> (2 + next_random(&seed) % 60);
        uint64_t in_flight = 1 + (next_random(&seed) & 0x3fffffff) % (UINT64_C(1) << (next_random(&seed) % 30 + 1));
        uint64_t pn = acked + in_flight;
        if (pn > XL_VARINT_MAX)
            continue;
        size_t len = xl_packet_number_len(pn, acked);
        uint64_t received = acked + next_random(&seed) % in_flight;
        uint64_t truncated = pn & (UINT64_MAX >> (64 - 8 * len));
        assert_true(xl_packet_number_decode(received, truncated, len) == pn);
    }
}

static size_t put_initial(uint8_t *buf, size_t cap, size_t payload) {
    size_t length_offset;
    xl_writer w = xl_writer_of(buf, cap);
    xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_INITIAL, &dcid, &scid, (const uint8_t *)"token", 5, 0x1234, 2, buf,
                       &length_offset);
    assert_false(w.failed);
    xl_packet_set_length(buf, length_offset, 2 + payload);
    memset(w.p, 0xee, payload);
    return (size_t)(w.p - buf) + payload;
}

TEST(an_initial_header_has_the_bytes_of_the_rfc) {
    uint8_t buf[64];
    size_t len = put_initial(buf, sizeof buf, 20);
    static const uint8_t expected[] = {0xc1, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 5,
                                       1,    2, 3, 4, 5, 5, 't',  'o',  'k',  'e',  'n',  0x40, 22,   0x12, 0x34};
    assert_int_equal(len, sizeof expected + 20);
    assert_memory_equal(buf, expected, sizeof expected);
}

TEST(long_headers_round_trip) {
    static const xl_packet_type types[] = {XL_PACKET_INITIAL, XL_PACKET_0RTT, XL_PACKET_HANDSHAKE};
    for (size_t t = 0; t < 3; t++)
        for (size_t pn_len = 1; pn_len <= 4; pn_len++) {
            uint8_t buf[128];
            size_t length_offset;
            xl_writer w = xl_writer_of(buf + 3, sizeof buf - 3);
            xl_packet_put_long(&w, XL_VERSION_1, types[t], &dcid, &scid, NULL, 0, 0x01020304, pn_len, buf + 3,
                               &length_offset);
            size_t header = (size_t)(w.p - buf) - 3;
            xl_packet_set_length(buf + 3, length_offset, pn_len + 40);
            xl_packet_header h;
            assert_int_equal(xl_packet_parse(buf + 3, header + 40 + 7, 8, &h), 0);
            assert_int_equal(h.type, types[t]);
            assert_int_equal(h.version, XL_VERSION_1);
            assert_true(xl_cid_equal(&h.dcid, &dcid));
            assert_true(xl_cid_equal(&h.scid, &scid));
            assert_int_equal(h.token_len, 0);
            assert_int_equal(h.pn_offset, header - pn_len);
            assert_int_equal(h.total_len, header + 40); /* 7 bytes belong to the next coalesced packet */
            assert_int_equal((buf[3] & 3) + 1, pn_len);
            assert_int_equal(buf[3 + h.pn_offset + pn_len - 1], 0x04);
        }
}

TEST(short_headers_round_trip) {
    uint8_t buf[64] = {0};
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_packet_put_short(&w, &dcid, true, true, 0xabcdef, 3);
    assert_int_equal(w.p - buf, 1 + 8 + 3);
    assert_int_equal(buf[0], 0x40 | 0x20 | 0x04 | 2);
    assert_memory_equal(buf + 9, "\xab\xcd\xef", 3);
    xl_packet_header h;
    assert_int_equal(xl_packet_parse(buf, 40, 8, &h), 0);
    assert_int_equal(h.type, XL_PACKET_1RTT);
    assert_true(xl_cid_equal(&h.dcid, &dcid));
    assert_int_equal(h.pn_offset, 9);
    assert_int_equal(h.total_len, 40);
    assert_true(h.has_quic_bit);
    buf[0] &= (uint8_t)~0x40;
    assert_int_equal(xl_packet_parse(buf, 40, 8, &h), 0);
    assert_false(h.has_quic_bit);
}

TEST(version_negotiation_offers_ours_and_a_reserved_version) {
    uint8_t buf[64];
    size_t len = xl_packet_put_version_negotiation(buf, sizeof buf, &dcid, &scid, XL_VERSIONS_1, 0x5c);
    assert_int_equal(len, 1 + 4 + 1 + 8 + 1 + 5 + 8);
    xl_packet_header h;
    assert_int_equal(xl_packet_parse(buf, len, 8, &h), 0);
    assert_int_equal(h.type, XL_PACKET_VERSION_NEGOTIATION);
    assert_true(xl_cid_equal(&h.dcid, &dcid));
    assert_true(xl_cid_equal(&h.scid, &scid));
    assert_int_equal(h.token_len, 8);
    assert_memory_equal(h.token, "\x00\x00\x00\x01\x5a\x5a\x5a\x5a", 8);
    assert_int_equal(xl_packet_put_version_negotiation(buf, len - 1, &dcid, &scid, XL_VERSIONS_1, 0), 0);
    assert_int_equal(xl_packet_parse(buf, len - 1, 8, &h), -1);
}

TEST(a_foreign_version_gives_its_cids_even_without_the_fixed_bit) {
    const uint8_t data[] = {0x80, 0xba, 0xba, 0xba, 0xba, 2, 7, 8, 1, 9, 0, 0};
    xl_packet_header h;
    assert_int_equal(xl_packet_parse(data, sizeof data, 8, &h), 0);
    assert_int_equal(h.type, XL_PACKET_OTHER_VERSION);
    assert_int_equal(h.version, 0xbabababa);
    assert_int_equal(h.dcid.len, 2);
    assert_int_equal(h.scid.id[0], 9);
}

TEST(a_retry_has_a_token_before_its_tag) {
    uint8_t data[1 + 4 + 1 + 2 + 1 + 3 + 16] = {0xf0, 0, 0, 0, 1, 0, 2, 7, 8, 'a', 'b', 'c'};
    xl_packet_header h;
    memset(data + 12, 0x11, 16);
    assert_int_equal(xl_packet_parse(data, 28, 8, &h), 0);
    assert_int_equal(h.type, XL_PACKET_RETRY);
    assert_int_equal(h.token_len, 3);
    assert_memory_equal(h.token, "abc", 3);
    assert_int_equal(h.pn_offset, 12);
    assert_int_equal(xl_packet_parse(data, 25, 8, &h), -1); /* no token left */
}

TEST(malformed_headers_are_refused) {
    uint8_t buf[64];
    xl_packet_header h;
    size_t len = put_initial(buf, sizeof buf, 20);
    assert_int_equal(xl_packet_parse(buf, len, 8, &h), 0);
    for (size_t n = 0; n < len; n++) {
        uint8_t *copy = malloc(n + 1); /* exactly n readable bytes after the first: the sanitizer sees any excess */
        memcpy(copy + 1, buf, n);
        assert_int_equal(xl_packet_parse(copy + 1, n, 8, &h), -1);
        free(copy);
    }
    buf[0] &= (uint8_t)~0x40;
    assert_int_equal(xl_packet_parse(buf, len, 8, &h), 0);
    assert_false(h.has_quic_bit);
    buf[0] |= 0x40;
    buf[5] = 21; /* CID over 20 bytes */
    assert_int_equal(xl_packet_parse(buf, len, 8, &h), -1);
    assert_int_equal(xl_packet_parse((const uint8_t *)"\x40\1\2", 3, 8, &h), -1);
    assert_int_equal(xl_packet_parse((const uint8_t *)"\x40\1\2", 3, 21, &h), -1);
    assert_int_equal(xl_packet_parse(NULL, 0, 8, &h), -1);
}

TEST(random_datagrams_never_lead_out_of_bounds) {
    uint64_t seed = 42;
    size_t accepted = 0;
    for (int i = 0; i < 100000; i++) {
        size_t len = 1 + next_random(&seed) % 80;
        uint8_t *data = malloc(len);
        for (size_t k = 0; k < len; k++)
            data[k] = (uint8_t)(next_random(&seed) >> 32);
        if (len > 6 && i % 2) { /* get past the version half of the time */
            memcpy(data + 1, "\0\0\0\1", 4);
            data[5] &= 15;
        }
        xl_packet_header h;
        if (xl_packet_parse(data, len, next_random(&seed) % 21, &h) == 0) {
            accepted++;
            assert_true(h.total_len <= len && h.total_len > 0 && h.pn_offset <= h.total_len);
            assert_true(h.dcid.len <= XL_MAX_CID_BYTES && h.scid.len <= XL_MAX_CID_BYTES);
            assert_true(h.token_len == 0 || (h.token >= data && h.token + h.token_len <= data + len));
        }
        free(data);
    }
    assert_true(accepted > 10000);
}

TEST_MAIN(NULL, NULL)
