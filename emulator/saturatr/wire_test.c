#include "tests/unit.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/auth.h"
#include "emulator/saturatr/wire.h"

static const sat_packet full = {.channel = 17,
                                .path = 3,
                                .flags = SAT_FLAG_VALID,
                                .tag = UINT64_C(0xfedcba9876543210),
                                .seq = 1234567890123,
                                .sent_us = UINT64_MAX - 5,
                                .cookie = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                                .echo_us = 77,
                                .received_us = 88,
                                .received_packets = 99};

TEST(every_packet_comes_back_as_it_was) {
    for (unsigned type = SAT_HELLO; type <= SAT_ACK; type++) {
        sat_packet packet = full;
        sat_packet read;
        uint8_t data[SAT_CONTROL_BYTES];
        packet.type = (uint8_t)type;
        size_t n = sat_wire_write(&packet, data);
        assert_int_equal(n, type == SAT_DATA ? SAT_HEADER_BYTES : SAT_CONTROL_BYTES);
        assert_true(sat_wire_read(&read, data, n, n));
        assert_int_equal(read.type, type);
        assert_int_equal(read.channel, 17);
        assert_int_equal(read.path, 3);
        assert_int_equal(read.flags, SAT_FLAG_VALID);
        assert_true(read.tag == full.tag && read.seq == full.seq && read.sent_us == full.sent_us);
        if (type == SAT_HELLO || type == SAT_WELCOME)
            assert_memory_equal(read.cookie, full.cookie, SAT_COOKIE_BYTES);
        if (type == SAT_WELCOME || type == SAT_ACK)
            assert_true(read.echo_us == 77 && read.received_us == 88);
        assert_int_equal(read.received_packets, type == SAT_ACK ? 99 : 0);
    }
}

TEST(refuses_what_is_no_packet) {
    sat_packet packet = full;
    sat_packet read;
    uint8_t data[SAT_CONTROL_BYTES];
    packet.type = SAT_HELLO;
    sat_wire_write(&packet, data);
    for (size_t n = 0; n < SAT_CONTROL_BYTES; n++)
        assert_false(sat_wire_read(&read, data, n, n));
    assert_false(sat_wire_read(&read, data, SAT_CONTROL_BYTES, SAT_CONTROL_BYTES + 1)); /* a longer datagram */
    data[4] = 9;                                                                        /* no such type */
    assert_false(sat_wire_read(&read, data, sizeof data, sizeof data));
    data[4] = SAT_HELLO;
    data[5] = SAT_MAX_CHANNELS;
    assert_false(sat_wire_read(&read, data, sizeof data, sizeof data));
    data[5] = 0;
    data[6] = SAT_MAX_PATHS;
    assert_false(sat_wire_read(&read, data, sizeof data, sizeof data));
    data[6] = 0;
    data[0] ^= 1;
    assert_false(sat_wire_read(&read, data, sizeof data, sizeof data));
}

TEST(an_answer_is_no_longer_than_the_question) {
    sat_packet packet = full;
    uint8_t data[SAT_CONTROL_BYTES];
    packet.type = SAT_HELLO;
    size_t question = sat_wire_write(&packet, data);
    packet.type = SAT_WELCOME;
    assert_true(sat_wire_write(&packet, data) <= question);
}

TEST(any_bytes_do_no_harm) {
    link_rng rng = {.state = 1};
    for (int i = 0; i < 100000; i++) {
        uint8_t data[SAT_CONTROL_BYTES];
        sat_packet packet = full;
        packet.type = (uint8_t)(1 + link_rng_next(&rng) % 4);
        sat_wire_write(&packet, data);
        data[link_rng_next(&rng) % sizeof data] = (uint8_t)link_rng_next(&rng);
        sat_packet read;
        if (sat_wire_read(&read, data, (size_t)(link_rng_next(&rng) % (sizeof data + 1)), sizeof data))
            assert_true(read.channel < SAT_MAX_CHANNELS && read.path < SAT_MAX_PATHS);
    }
}

TEST(proofs_and_tags_depend_on_token_role_and_nonces) {
    sat_nonces nonces = {.client = {1}, .server = {2}};
    sat_nonces others = {.client = {1}, .server = {3}};
    uint8_t proof[SAT_PROOF_BYTES];
    uint8_t other[SAT_PROOF_BYTES];
    uint64_t tag;
    uint64_t other_tag;
    assert_true(sat_auth_proof("a secret token", SAT_CLIENT, &nonces, proof));
    assert_true(sat_auth_proof("a secret token", SAT_CLIENT, &nonces, other));
    assert_true(sat_auth_same(proof, other, SAT_PROOF_BYTES));
    assert_true(sat_auth_proof("another token", SAT_CLIENT, &nonces, other));
    assert_false(sat_auth_same(proof, other, SAT_PROOF_BYTES));
    assert_true(sat_auth_proof("a secret token", SAT_SERVER, &nonces, other)); /* a received proof cannot be returned */
    assert_false(sat_auth_same(proof, other, SAT_PROOF_BYTES));
    assert_true(sat_auth_proof("a secret token", SAT_CLIENT, &others, other)); /* nor used again with other nonces */
    assert_false(sat_auth_same(proof, other, SAT_PROOF_BYTES));
    assert_true(sat_auth_tag("a secret token", SAT_CLIENT, &nonces, &tag));
    assert_true(sat_auth_tag("a secret token", SAT_SERVER, &nonces, &other_tag));
    assert_true(tag != other_tag);
}

TEST(a_cookie_is_of_one_address_and_channel) {
    uint8_t key[SAT_KEY_BYTES] = {9};
    uint8_t cookie[SAT_COOKIE_BYTES];
    uint8_t other[SAT_COOKIE_BYTES];
    xl_addr at = {.family = 4, .ip = {192, 0, 2, 1}, .port = 5000};
    assert_true(sat_auth_cookie(key, 1, &at, cookie));
    assert_true(sat_auth_cookie(key, 2, &at, other));
    assert_memory_not_equal(cookie, other, SAT_COOKIE_BYTES);
    at.port = 5001;
    assert_true(sat_auth_cookie(key, 1, &at, other));
    assert_memory_not_equal(cookie, other, SAT_COOKIE_BYTES);
    at.port = 5000;
    at.ip[3] = 2;
    assert_true(sat_auth_cookie(key, 1, &at, other));
    assert_memory_not_equal(cookie, other, SAT_COOKIE_BYTES);
    key[0] = 8;
    at.ip[3] = 1;
    assert_true(sat_auth_cookie(key, 1, &at, other));
    assert_memory_not_equal(cookie, other, SAT_COOKIE_BYTES);
}

TEST_MAIN(NULL, NULL)
