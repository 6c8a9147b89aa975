/* Both sides are sessions of http3.h. */
#include "http/testing/http3_pair.h"

#define PAIR_TEST(name) TEST_NEW(name, pair, p, pair_new(false), pair_free)

PAIR_TEST(a_range_request_is_answered_intact) {
    p->body_bytes = 3 * H3_DATA_FRAME_BYTES + 77;
    assert_int_equal(get(p, 0, "GET", "bytes=100-49325"), 0);
    run(p, 3000000);
    exchange *e = &p->exchanges[0];
    assert_string_equal(p->last_range, "bytes=100-49325");
    assert_string_equal(p->last_path, "/synthetic/1000");
    assert_string_equal(p->last_method, "GET");
    assert_int_equal(e->head.status, 206);
    assert_true(e->head.has_content_length);
    assert_int_equal(e->head.content_length, p->body_bytes);
    assert_true(e->head.has_content_range);
    assert_int_equal(e->head.first, 100);
    assert_int_equal(e->head.last, 99 + p->body_bytes);
    assert_int_equal(e->head.total, 1000 + p->body_bytes);
    assert_true(e->ended);
    assert_false(e->aborted);
    assert_int_equal(e->received, p->body_bytes);
    assert_false(e->wrong_content);
    assert_int_equal(p->responses_written, 1);
    assert_int_equal(p->responses_acknowledged, 1);
}

/* RFC 9110 section 13.1.5: no response has a validator, so the client's parts may be of another version. */
TEST(a_range_under_a_condition_is_none) {
    const h3_header orders[][2] = {{{"range", "bytes=100-199"}, {"if-range", "\"a\""}},
                                   {{"if-range", "\"a\""}, {"range", "bytes=100-199"}}};
    for (size_t i = 0; i < 2; i++) {
        pair *p = pair_new(false);
        p->body_bytes = 100;
        exchange *e = &p->exchanges[0];
        e->used = true;
        assert_int_equal(
            h3_submit(p->client.session, "GET", "server.test", "/synthetic/1000", orders[i], 2, &e->stream), 0);
        run(p, 1000000);
        assert_string_equal(p->last_path, "/synthetic/1000");
        assert_string_equal(p->last_range, "");
        pair_free(p);
    }
}

TEST(bodies_of_every_awkward_length_arrive_whole) {
    const uint64_t lengths[] = {
        0, 1, 63, 64, H3_DATA_FRAME_BYTES - 1, H3_DATA_FRAME_BYTES, H3_DATA_FRAME_BYTES + 1, 2 * H3_DATA_FRAME_BYTES};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        pair *p = pair_new(false);
        p->body_bytes = lengths[i];
        assert_int_equal(get(p, 0, "GET", NULL), 0);
        run(p, 2000000);
        assert_true(p->exchanges[0].ended);
        assert_int_equal(p->exchanges[0].received, lengths[i]);
        assert_false(p->exchanges[0].wrong_content);
        pair_free(p);
    }
}

PAIR_TEST(a_head_request_gets_the_length_and_no_body) {
    p->body_bytes = 5000;
    assert_int_equal(get(p, 0, "HEAD", NULL), 0);
    run(p, 1000000);
    assert_true(p->exchanges[0].ended);
    assert_int_equal(p->exchanges[0].head.content_length, 5000);
    assert_int_equal(p->exchanges[0].received, 0);
}

PAIR_TEST(several_requests_at_once_are_all_answered) {
    p->body_bytes = 400000; /* more than the send buffer takes */
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(get(p, i, "GET", NULL), 0);
    run(p, 30000000);
    for (size_t i = 0; i < 8; i++) {
        assert_true(p->exchanges[i].ended);
        assert_int_equal(p->exchanges[i].received, p->body_bytes);
        assert_false(p->exchanges[i].wrong_content);
    }
    assert_int_equal(p->responses_written, 8);
}

PAIR_TEST(a_huge_body_is_pulled_no_further_than_the_send_buffer) {
    p->body_bytes = UINT64_C(1) << 30;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, ONE_WAY_US + 5000); /* the request has arrived, no acknowledgement has come back */
    assert_int_equal(p->requests, 1);
    assert_in_range(p->body_pulled, 1, SEND_BUFFER + 2 * H3_DATA_FRAME_BYTES);
    p->air.is_lost[0] = p->air.is_lost[1] = true;
    uint64_t pulled = p->body_pulled;
    run(p, 500000);
    assert_in_range(p->body_pulled, pulled, pulled + SEND_BUFFER + 2 * H3_DATA_FRAME_BYTES);
}

PAIR_TEST(a_cancelled_request_stops_the_server) {
    p->body_bytes = UINT64_C(1) << 30;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, 300000);
    assert_int_equal(p->bodies_open, 1);
    h3_cancel(p->client.session, p->exchanges[0].stream, H3_REQUEST_CANCELLED);
    run(p, 300000);
    assert_int_equal(p->bodies_open, 0);
    assert_int_equal(p->server_aborts, 1);
    assert_int_equal(p->server_abort_code, H3_REQUEST_CANCELLED);
    assert_false(p->exchanges[0].ended || p->exchanges[0].aborted);

    p->body_bytes = 2000; /* the connection stays open */
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 2000000);
    assert_true(p->exchanges[1].ended);
}

PAIR_TEST(a_body_that_fails_resets_its_stream_only) {
    p->body_bytes = 200000;
    p->fail_body_at = 150000;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, 3000000);
    assert_true(p->exchanges[0].aborted);
    assert_int_equal(p->exchanges[0].abort_code, H3_INTERNAL_ERROR);
    p->fail_body_at = UINT64_MAX;
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 3000000);
    assert_true(p->exchanges[1].ended);
    assert_false(p->client.closed || p->server.closed);
}

PAIR_TEST(after_goaway_open_requests_finish_and_new_ones_are_refused) {
    p->body_bytes = 300000;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, ONE_WAY_US + 1000);
    /* The server never sends GOAWAY, so the test writes it on the control stream. The next request would be 4. */
    const uint64_t control = 3;
    const uint8_t goaway[] = {0x07, 0x01, 0x04};
    assert_int_equal(xl_stream_send(p->server.connection, control, goaway, sizeof goaway, false, NULL), sizeof goaway);
    run(p, 10000000);
    assert_int_equal(p->client_goaways, 1);
    assert_true(p->exchanges[0].ended);
    assert_int_equal(get(p, 1, "GET", NULL), XL_ERR_CLOSED);
}

/* RFC 9114 section 5.2: requests from the identifier on were not processed, and may be repeated elsewhere. */
PAIR_TEST(a_goaway_below_an_open_request_rejects_it) {
    p->body_bytes = 300000;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, ONE_WAY_US + 1000);
    const uint8_t goaway[] = {0x07, 0x01, 0x04};
    assert_int_equal(xl_stream_send(p->server.connection, 3, goaway, sizeof goaway, false, NULL), sizeof goaway);
    run(p, 10000000);
    assert_true(p->exchanges[0].ended);
    assert_true(p->exchanges[1].aborted && !p->exchanges[1].ended);
    assert_int_equal(p->exchanges[1].abort_code, H3_REQUEST_REJECTED);
    assert_false(p->client.closed || p->server.closed);
}

static void write_responses_by_hand(pair *p) {
    h3_session_free(p->server.session); /* it has opened the control stream */
    p->server.session = NULL;
    p->server.by_hand = true;
}

/* RFC 9114 section 4.1.2. */
TEST(a_response_of_another_length_than_announced_costs_only_its_stream) {
    static const uint8_t head[] = {0x01, 0x06, 0x00, 0x00, 0xd9, 0x54, 0x01, '5'}; /* :status 200, content-length 5 */
    static const uint8_t body[] = {0x00, 0x05, 'x', 'x', 'x', 'x', 'x'}, half[] = {0x00, 0x01, 'x'};
    pair *p = pair_new(false);
    write_responses_by_hand(p);
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 100000);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(xl_stream_send(p->server.connection, p->exchanges[i].stream, head, sizeof head, false, NULL),
                         sizeof head);
    assert_int_equal(xl_stream_send(p->server.connection, p->exchanges[0].stream, half, sizeof half, true, NULL),
                     sizeof half);
    run(p, 100000);
    assert_int_equal(xl_stream_send(p->server.connection, p->exchanges[1].stream, body, sizeof body, true, NULL),
                     sizeof body);
    run(p, 100000);
    assert_true(p->exchanges[0].aborted);
    assert_int_equal(p->exchanges[0].abort_code, H3_MESSAGE_ERROR);
    assert_true(p->exchanges[1].ended);
    assert_false(p->client.closed);
    pair_free(p);
}

/* Writes a HEADERS frame with a status, if any, and a field of value_bytes without Huffman code. */
static size_t put_headers(uint8_t *to, uint8_t status, size_t value_bytes) {
    const size_t len = 2u + (status ? 1u : 0u) + 4u + 3u + value_bytes;
    uint8_t *at = to;
    *at++ = 0x01;
    *at++ = (uint8_t)(0x40 | len >> 8);
    *at++ = (uint8_t)len;
    *at++ = 0, *at++ = 0; /* no dynamic table */
    if (status)
        *at++ = status;
    memcpy(at, "\x23x-a", 4), at += 4;
    *at++ = 0x7f, *at++ = (uint8_t)(0x80 | (value_bytes - 127) % 128), *at++ = (uint8_t)((value_bytes - 127) / 128);
    memset(at, 'x', value_bytes);
    return (size_t)(at - to) + value_bytes;
}

TEST(each_interim_response_and_the_trailers_have_the_limit_of_a_field_section) {
    enum { STATUS_103 = 0xc0 | 24, STATUS_200 = 0xc0 | 25, VALUE_BYTES = 6000 };
    static const uint8_t statuses[] = {STATUS_103, STATUS_103, STATUS_103, STATUS_200, 0};
    pair *p = pair_new(false);
    exchange *e = &p->exchanges[0];
    write_responses_by_hand(p);
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, 100000);
    for (size_t i = 0; i < sizeof statuses; i++) {
        uint8_t frame[VALUE_BYTES + 16];
        const size_t len = put_headers(frame, statuses[i], VALUE_BYTES);
        assert_int_equal(xl_stream_send(p->server.connection, e->stream, frame, len, i + 1 == sizeof statuses, NULL),
                         len);
        run(p, 100000);
    }
    assert_int_equal(e->head.status, 200);
    assert_true(e->ended && !e->aborted);
    pair_free(p);
}

PAIR_TEST(a_field_section_beyond_the_limit_costs_only_its_stream) {
    p->body_bytes = 10;
    char *big = malloc(9000);
    assert_non_null(big);
    memset(big, 'x', 8999);
    big[8999] = '\0';
    const h3_header headers[] = {{"x-a", big}, {"x-b", big}};
    exchange *e = &p->exchanges[0];
    assert_int_equal(h3_submit(p->client.session, "GET", "server.test", "/", headers, 2, &e->stream), 0);
    e->used = true;
    run(p, 1000000);
    free(big);
    assert_int_equal(p->requests, 0);
    assert_true(e->aborted);
    assert_int_equal(e->abort_code, H3_EXCESSIVE_LOAD);
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 1000000);
    assert_true(p->exchanges[1].ended);
}

TEST_MAIN(NULL, NULL)
