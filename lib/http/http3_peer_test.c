/* The server against a client that writes its streams by hand: the layout of responses, and every kind of violation by
 * a peer. */
#include "http/testing/http3_pair.h"

static void send_raw(pair *p, uint64_t stream, const void *data, size_t len, bool fin) {
    assert_int_equal(xl_stream_send(p->client.connection, stream, data, len, fin, NULL), len);
}

static uint64_t open_raw(pair *p, bool bidirectional) {
    uint64_t id;
    assert_int_equal(xl_stream_open(p->client.connection, bidirectional, &id), 0);
    return id;
}

static const uint8_t settings_bytes[] = {0x00, 0x04, 0x00}; /* stream type control, SETTINGS, length 0 */
/* HEADERS: prefix 00 00; :method GET (static 17), :scheme https (23), :path / (1), :authority (0) "a". */
static const uint8_t get_bytes[] = {0x01, 0x08, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, 'a'};

static void expect_close(pair *p, uint64_t code) {
    run(p, 1000000);
    assert_true(p->client.closed);
    assert_true(p->client.application_error);
    assert_int_equal(p->client.close_code, code);
}

/* Fetches a body by hand and checks that the marked bytes of the stream are the marked bytes of the body. */
static void check_mark(uint64_t body_bytes, uint64_t first, uint64_t size) {
    pair *p = pair_new(true);
    const h3_body_mark mark = {.first = first, .size = size, .priority = 0};
    p->body_bytes = body_bytes;
    p->mark = mark;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    p->raw_stream = open_raw(p, true);
    send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    run(p, 3000000);
    assert_true(p->raw_fin);
    assert_int_equal(p->raw[0], 0x01);
    uint64_t headers_bytes = p->raw[1] < 64 ? 2u + p->raw[1] : 3u + ((p->raw[1] & 0x3fu) << 8 | p->raw[2]);

    xl_frame_mark in_stream = h3_mark_in_stream(headers_bytes, body_bytes, &mark);
    assert_true(in_stream.position + in_stream.size <= p->raw_len);
    uint64_t body_at = 0, marked = 0, first_marked = UINT64_MAX;
    size_t at = (size_t)headers_bytes;
    while (at < p->raw_len) {
        size_t header_at = at;
        assert_int_equal(p->raw[at], 0x00);
        size_t len = p->raw[at + 1] < 64 ? p->raw[at + 1] : ((p->raw[at + 1] & 0x3fu) << 8 | p->raw[at + 2]);
        at += p->raw[at + 1] < 64 ? 2 : 3;
        /* A frame header is in the mark if and only if the next byte is marked. */
        bool inside = header_at >= in_stream.position && header_at < in_stream.position + in_stream.size;
        assert_int_equal(inside, body_at >= first && body_at < first + size);
        for (size_t i = 0; i < len; i++, at++, body_at++) {
            assert_int_equal(p->raw[at], content(body_at));
            if (at >= in_stream.position && at < in_stream.position + in_stream.size) {
                first_marked = first_marked == UINT64_MAX ? body_at : first_marked;
                marked++;
            }
        }
    }
    assert_int_equal(body_at, body_bytes);
    assert_int_equal(marked, size);
    assert_int_equal(first_marked, first);
    pair_free(p);
}

TEST(a_frame_mark_covers_the_frame_and_the_headers_inside_it) {
    check_mark(40, 0, 40);
    check_mark(40, 3, 10);
    check_mark(30000, 0, 5000);
    check_mark(50000, 0, H3_DATA_FRAME_BYTES);
    check_mark(50000, 0, H3_DATA_FRAME_BYTES + 1);
    check_mark(50000, H3_DATA_FRAME_BYTES, 2 * H3_DATA_FRAME_BYTES);
    check_mark(50000, 100, 49900);
    check_mark(H3_DATA_FRAME_BYTES + 20, 16000, 403);
}

TEST(a_mark_past_the_body_is_empty) {
    const h3_body_mark mark = {.first = 500, .size = 10};
    assert_int_equal(h3_mark_in_stream(50, 400, &mark).size, 0);
    const h3_body_mark clipped = {.first = 390, .size = UINT64_MAX};
    assert_int_equal(h3_mark_in_stream(50, 400, &clipped).size, 10);
}

/* The client is driven by hand. */
#define PEER_TEST(name) TEST_NEW(name, pair, p, pair_new(true), pair_free)

PEER_TEST(a_body_before_the_headers_is_an_unexpected_frame) {
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, true), "\x00\x01x", 3, true);
    expect_close(p, 0x0105);
}

/* RFC 9114 sections 5.2 and 7.2.6: identifiers must not increase, and a server's are IDs of requests. */
TEST(a_goaway_that_breaks_the_rules_closes_the_connection) {
    static const struct {
        bool to_server;
        uint8_t bytes[9];
        size_t len;
        uint64_t code; /* 0: none */
    } rows[] = {
        {false, {7, 1, 8, 7, 1, 8, 7, 1, 4}, 9, 0},
        {false, {7, 1, 4, 7, 1, 8}, 6, 0x0108},
        {false, {7, 1, 2}, 3, 0x0108}, /* not the ID of a client's request stream */
        {false, {7, 1, 1}, 3, 0x0108},
        {false, {7, 1, 3}, 3, 0x0108},
        {false, {7, 0}, 2, 0x0106},
        {false, {7, 1, 0x44}, 3, 0x0106},
        {true, {7, 1, 9, 7, 1, 9, 7, 1, 3}, 9, 0}, /* a push ID */
        {true, {7, 1, 3, 7, 1, 4}, 6, 0x0108},
        {true, {7, 0}, 2, 0x0106},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pair *p = pair_new(false);
        p->body_bytes = 200000;
        assert_int_equal(get(p, 0, "GET", NULL), 0);
        run(p, ONE_WAY_US + 1000);
        xl_connection *c = rows[i].to_server ? p->client.connection : p->server.connection;
        assert_int_equal(xl_stream_send(c, rows[i].to_server ? 2 : 3, rows[i].bytes, rows[i].len, false, NULL),
                         rows[i].len);
        run(p, 3000000);
        const side *told = rows[i].to_server ? &p->client : &p->server;
        assert_int_equal(rows[i].code != 0, told->closed);
        assert_int_equal(rows[i].code, told->close_code);
        assert_int_equal(rows[i].code == 0, p->exchanges[0].ended);
        pair_free(p);
    }
}

PEER_TEST(a_control_stream_without_settings_is_refused) {
    send_raw(p, open_raw(p, false), "\x00\x07\x01\x00", 4, false); /* GOAWAY first */
    expect_close(p, 0x010a);
}

PEER_TEST(closing_the_control_stream_closes_the_connection) {
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, true);
    expect_close(p, 0x0104);
}

PEER_TEST(resetting_the_control_stream_closes_the_connection) {
    uint64_t id = open_raw(p, false);
    send_raw(p, id, settings_bytes, sizeof settings_bytes, false);
    run(p, 100000);
    assert_int_equal(xl_stream_reset(p->client.connection, id, 0x0100), 0);
    expect_close(p, 0x0104);
}

PEER_TEST(a_second_control_stream_is_refused) {
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    expect_close(p, 0x0103);
}

/* nghttp3 0.8.0 aborts the program if its input ends after the identifier of a PRIORITY_UPDATE frame. */
static const uint8_t control_bytes[] = {0x00, 0x04, 0x03, 0x06, 0x40, 0x64,                 /* SETTINGS */
                                        0x80, 0x0f, 0x07, 0x00, 0x04, 0x00, 'u',  '=', '5', /* of stream 0 */
                                        0x80, 0x0f, 0x07, 0x00, 0x07, 0x40, 0x04, 'u', '=', '1', ',', 'i'};

static void expect_answer(pair *p) {
    p->raw_stream = open_raw(p, true);
    send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    run(p, 100000);
    assert_true(p->raw_fin && !p->client.closed);
}

TEST(a_priority_update_may_come_in_any_pieces) {
    for (size_t cut = 1; cut < sizeof control_bytes; cut++)
        for (size_t rests = 0; rests < 2; rests++) {
            pair *p = pair_new(true);
            uint64_t control = open_raw(p, false);
            send_raw(p, control, control_bytes, cut, false);
            run(p, 100000);
            if (rests)
                h3_rest(p->server.session);
            send_raw(p, control, control_bytes + cut, sizeof control_bytes - cut, false);
            run(p, 100000);
            expect_answer(p);
            pair_free(p);
        }
}

PEER_TEST(a_priority_update_may_come_byte_by_byte) {
    uint64_t control = open_raw(p, false);
    for (size_t i = 0; i < sizeof control_bytes; i++) {
        send_raw(p, control, control_bytes + i, 1, false);
        run(p, 30000);
    }
    expect_answer(p);
}

PEER_TEST(a_priority_update_changes_the_order_of_responses_that_are_being_sent) {
    static const uint8_t urgent[] = {0x80, 0x0f, 0x07, 0x00, 0x04, 0x04, 'u', '=', '1'}; /* of stream 4 */
    const uint64_t control = open_raw(p, false);
    p->body_bytes = 60000;
    send_raw(p, control, settings_bytes, sizeof settings_bytes, false);
    for (int i = 0; i < 2; i++) {
        p->raw_stream = open_raw(p, true);
        send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    }
    run(p, 15000);
    send_raw(p, control, urgent, sizeof urgent, false);
    run(p, 40000); /* two flights have arrived, less than the first response */
    assert_true(p->raw_len > 10000);
}

/* RFC 9114 section 7.1. nghttp3 0.8.0 would parse the rest as a frame, here as the beginning of a PRIORITY_UPDATE. */
TEST(a_frame_that_is_longer_than_its_identifier_is_an_error) {
    static const uint8_t types[] = {0x03, 0x07, 0x0d}; /* CANCEL_PUSH, GOAWAY, MAX_PUSH_ID */
    for (size_t i = 0; i < sizeof types; i++) {
        pair *p = pair_new(true);
        uint64_t control = open_raw(p, false);
        const uint8_t frame[] = {types[i], 0x08, 0x00, 0x80, 0x0f, 0x07, 0x00, 0x04, 0x00};
        send_raw(p, control, settings_bytes, sizeof settings_bytes, false);
        send_raw(p, control, frame, sizeof frame, false);
        expect_close(p, 0x0106);
        pair_free(p);
    }
}

TEST(a_control_stream_may_not_end_within_a_priority_update) {
    for (size_t is_apart = 0; is_apart < 2; is_apart++) {
        pair *p = pair_new(true);
        uint64_t control = open_raw(p, false);
        send_raw(p, control, control_bytes, 12, !is_apart);
        if (is_apart) {
            run(p, 100000);
            send_raw(p, control, NULL, 0, true);
        }
        expect_close(p, 0x0104);
        pair_free(p);
    }
}

PEER_TEST(a_broken_field_section_fails_decompression) {
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    /* A reference to the dynamic table, whose capacity is 0. */
    send_raw(p, open_raw(p, true), "\x01\x03\x02\x00\x80", 5, true);
    expect_close(p, 0x0200);
}

PEER_TEST(a_request_without_path_is_malformed_and_costs_its_stream) {
    p->body_bytes = 10;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, true), "\x01\x04\x00\x00\xd1\xd7", 6, true);
    run(p, 1000000);
    assert_int_equal(p->requests, 0);
    assert_false(p->client.closed);
    p->raw_stream = open_raw(p, true);
    send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    run(p, 1000000);
    assert_int_equal(p->requests, 1);
    assert_true(p->raw_fin);
}

/* As get_bytes, with content-length (static 4) 5. */
static const uint8_t post_bytes[] = {0x01, 0x0b, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, 'a', 0x54, 0x01, '5'};

/* RFC 9114 section 4.1.2. Other requests continue. */
TEST(a_body_of_another_length_than_announced_costs_its_stream) {
    static const uint8_t bodies[2][9] = {{0x00, 0x01, 'x'}, {0x00, 0x07, 'x', 'x', 'x', 'x', 'x', 'x', 'x'}};
    for (size_t is_long = 0; is_long < 2; is_long++) {
        pair *p = pair_new(true);
        p->body_bytes = 5000000;
        send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
        uint64_t wrong = open_raw(p, true), right = open_raw(p, true);
        send_raw(p, right, get_bytes, sizeof get_bytes, true);
        send_raw(p, wrong, post_bytes, sizeof post_bytes, false);
        send_raw(p, wrong, bodies[is_long], is_long ? 9 : 3, true);
        run(p, 200000);
        assert_false(p->client.closed);
        assert_int_equal(p->requests, 2);
        assert_int_equal(p->server_aborts, 1);
        assert_int_equal(p->server_abort_code, H3_MESSAGE_ERROR);
        assert_int_equal(p->bodies_open, 1);
        pair_free(p);
    }
}

PEER_TEST(a_request_cut_off_by_a_reset_is_forgotten) {
    p->body_bytes = 10;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    for (int i = 0; i < 150; i++) { /* more than the stream limit, so they must be freed */
        uint64_t id = open_raw(p, true);
        send_raw(p, id, get_bytes, 5, false);
        run(p, 50000);
        assert_int_equal(xl_stream_reset(p->client.connection, id, H3_REQUEST_CANCELLED), 0);
        run(p, 100000);
    }
    assert_int_equal(p->requests, 0);
    assert_false(p->client.closed);
}

TEST(random_input_never_breaks_the_server) {
    uint32_t lcg = 12345;
    for (int round = 0; round < 60; round++) {
        pair *p = pair_new(true);
        p->body_bytes = 100;
        bool control = round % 3 != 0;
        if (control)
            send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
        for (int i = 0; i < 12 && !p->client.closed; i++) {
            uint8_t bytes[64];
            size_t len = 1 + (lcg >> 8) % sizeof bytes;
            memcpy(bytes, get_bytes, sizeof get_bytes);
            for (size_t k = i % 2 ? 0 : sizeof get_bytes; k < len; k++) {
                lcg = lcg * 1664525 + 1013904223;
                bytes[k] = (uint8_t)(lcg >> 24 & (round % 2 ? 0xff : 0x0f));
            }
            uint64_t id;
            if (xl_stream_open(p->client.connection, lcg >> 31, &id) != 0)
                break;
            (void)xl_stream_send(p->client.connection, id, bytes, len, lcg >> 30 & 1, NULL);
            lcg = lcg * 1664525 + 1013904223;
            run(p, 50000);
        }
        run(p, 300000);
        pair_free(p);
    }
}

TEST_MAIN(NULL, NULL)
