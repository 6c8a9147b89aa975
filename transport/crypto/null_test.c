#include <string.h>

#include "tests/unit.h"
#include "crypto/crypto.h"

#define HEADER  9
#define PN_LEN  2
#define PAYLOAD 200

static const uint8_t SECRET[32] = {1, 2, 3};

static xl_keys *null_keys(void) {
    xl_keys *keys = xl_keys_from_secret(XL_VERSION_1, XL_AEAD_AES_128_GCM, SECRET, sizeof SECRET);
    assert_non_null(keys);
    xl_keys_make_null(keys);
    return keys;
}

/* A short header packet with packet number 0x0105, payload 7, 7, 7, …; returns its protected length. */
static size_t make_packet(const xl_keys *keys, uint64_t path, uint8_t *packet) {
    memset(packet, 7, HEADER + PN_LEN + PAYLOAD);
    packet[0] = 0x40 | (PN_LEN - 1);
    packet[HEADER] = 0x01;
    packet[HEADER + 1] = 0x05;
    return xl_keys_protect(keys, path, 0x0105, packet, HEADER, PN_LEN, PAYLOAD);
}

TEST(a_packet_is_plain_and_as_long_as_a_protected_one) {
    xl_keys *keys = null_keys(), *real = xl_keys_from_secret(XL_VERSION_1, XL_AEAD_AES_128_GCM, SECRET, sizeof SECRET);
    uint8_t packet[300], other[300], *payload;
    size_t len = make_packet(keys, 3, packet), pn_len;
    uint64_t pn;
    assert_int_equal(len, make_packet(real, 3, other));
    assert_int_equal(packet[HEADER + 1], 0x05);
    assert_int_equal(0, xl_keys_unmask(keys, packet, len, HEADER, &pn, &pn_len));
    assert_int_equal(pn, 0x0105);
    assert_int_equal(pn_len, PN_LEN);
    assert_int_equal(PAYLOAD, xl_keys_open(keys, 3, pn, packet, len, HEADER, pn_len, &payload));
    assert_ptr_equal(payload, packet + HEADER + PN_LEN);
    assert_int_equal(payload[PAYLOAD - 1], 7);
    assert_int_equal(xl_keys_sealed_count(keys), 1);
    xl_keys_free(keys);
    xl_keys_free(real);
}

TEST(another_path_number_or_generation_does_not_open_it) {
    xl_keys *keys = null_keys(), *next = xl_keys_next(keys);
    uint8_t packet[300], *payload;
    size_t len = make_packet(keys, 3, packet);
    assert_int_equal(-1, xl_keys_open(keys, 2, 0x0105, packet, len, HEADER, PN_LEN, &payload));
    assert_int_equal(-1, xl_keys_open(keys, 3, 0x0106, packet, len, HEADER, PN_LEN, &payload));
    assert_int_equal(-1, xl_keys_open(keys, 3, 0x0105, packet, len - 1, HEADER, PN_LEN, &payload));
    assert_int_equal(-1, xl_keys_open(next, 3, 0x0105, packet, len, HEADER, PN_LEN, &payload));
    len = make_packet(next, 3, packet); /* the next generation is null too */
    assert_int_equal(packet[HEADER + 1], 0x05);
    assert_int_equal(PAYLOAD, xl_keys_open(next, 3, 0x0105, packet, len, HEADER, PN_LEN, &payload));
    xl_keys_free(keys);
    xl_keys_free(next);
}

TEST_MAIN(NULL, NULL)
