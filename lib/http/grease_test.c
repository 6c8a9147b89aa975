/* Reserved streams, frames and settings: sent if the option is on, and ignored by both sides. */
#include "http/grease.h"
#include "http/testing/http3_pair.h"

#define SERVER_CONTROL  3  /* stream ID of the server's first unidirectional stream */
#define SERVER_RESERVED 15 /* stream ID after the three critical streams */

static uint64_t read_varint(const uint8_t *data, size_t len, size_t *at) {
    assert_true(*at < len);
    size_t bytes = (size_t)1 << (data[*at] >> 6);
    assert_true(*at + bytes <= len);
    uint64_t value = data[*at] & 0x3f;
    for (size_t i = 1; i < bytes; i++)
        value = value << 8 | data[*at + i];
    *at += bytes;
    return value;
}

static bool is_reserved(uint64_t number) {
    return number >= 0x21 && (number - 0x21) % 0x1f == 0;
}

/* Returns the next frame's type. *at: end of the frame. */
static uint64_t skip_frame(const uint8_t *data, size_t len, size_t *at) {
    uint64_t type = read_varint(data, len, at), payload = read_varint(data, len, at);
    assert_true(payload <= len - *at);
    *at += payload;
    return type;
}

TEST(each_number_gives_one_of_a_reserved_type) {
    static const uint8_t begin[] = {0x00, 0x04, 0x06, 0x01, 0x00, 0x06, 0x48, 0x00, 0x07};
    uint64_t random = 1;
    for (int i = 0; i < 100000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint8_t out[H3_GREASE_BYTES];
        size_t at = 0, len = h3_grease_stream(random, out);
        assert_true(is_reserved(read_varint(out, len, &at)) && len <= sizeof out);
        at = 0;
        len = h3_grease_frame(random, out);
        assert_true(is_reserved(skip_frame(out, len, &at)) && at == len);
        len = h3_grease_control(random, begin, sizeof begin, out);
        assert_true(len > sizeof begin && len <= sizeof out);
        at = 1;
        assert_int_equal(skip_frame(out, len, &at), 0x04);
        assert_memory_equal(out + 3, begin + 3, sizeof begin - 3);
        size_t setting = sizeof begin;
        assert_true(is_reserved(read_varint(out, at, &setting)));
        (void)read_varint(out, at, &setting);
        assert_int_equal(setting, at);
        assert_true(is_reserved(skip_frame(out, len, &at)) && at == len);
    }
}

TEST(what_is_not_the_settings_alone_is_left_as_it_is) {
    uint8_t begin[80] = {0x00, 0x04, 0x02, 0x01, 0x00}, out[H3_GREASE_BYTES];
    assert_true(h3_grease_control(1, begin, 5, out) > 0);
    assert_int_equal(h3_grease_control(1, begin, 4, out), 0);
    assert_int_equal(h3_grease_control(1, begin, 6, out), 0);
    begin[1] = 0x07;
    assert_int_equal(h3_grease_control(1, begin, 5, out), 0);
    begin[1] = 0x04;
    begin[2] = 60;
    assert_int_equal(h3_grease_control(1, begin, 63, out), 0);
}

static void fetch(pair *p, size_t slot) {
    assert_int_equal(get(p, slot, "GET", "bytes=100-"), 0);
    run(p, 2000000);
    assert_true(p->exchanges[slot].ended && !p->exchanges[slot].wrong_content);
    assert_int_equal(p->exchanges[slot].received, p->body_bytes);
}

TEST(both_sides_ignore_it) {
    pair *p = pair_begin(false, false, true);
    p->body_bytes = 100000;
    fetch(p, 0);
    fetch(p, 1);
    assert_false(p->client.closed || p->server.closed);
    pair_free(p);
}

/* Reads a stream of the server by hand. */
static pair *read_server_stream(uint64_t id, bool greases) {
    pair *p = pair_begin(true, false, greases);
    p->raw_stream = id;
    read_raw(p, &p->client);
    run(p, 200000);
    return p;
}

TEST(a_server_sends_a_stream_a_setting_and_a_frame) {
    for (int greases = 0; greases < 2; greases++) {
        pair *p = read_server_stream(SERVER_CONTROL, greases);
        size_t at = 1;
        assert_int_equal(p->raw[0], 0x00);
        assert_int_equal(skip_frame(p->raw, p->raw_len, &at), 0x04);
        unsigned settings = 0;
        for (size_t setting = 3; setting < at; (void)read_varint(p->raw, at, &setting))
            settings += is_reserved(read_varint(p->raw, at, &setting));
        assert_int_equal(settings, greases);
        assert_int_equal(at < p->raw_len && is_reserved(skip_frame(p->raw, p->raw_len, &at)), greases);
        assert_int_equal(at, p->raw_len);
        pair_free(p);
        p = read_server_stream(SERVER_RESERVED, greases);
        assert_int_equal(p->raw_fin, greases);
        at = 0;
        assert_int_equal(greases && is_reserved(read_varint(p->raw, p->raw_len, &at)), greases);
        pair_free(p);
    }
}

TEST(a_clients_first_request_begins_with_a_frame) {
    pair *p = pair_begin(false, true, true);
    for (int i = 0; i < 2; i++) {
        p->raw_len = 0;
        p->raw_fin = false;
        p->raw_stream = 4 * (uint64_t)i;
        assert_int_equal(get(p, (size_t)i, "GET", NULL), 0);
        run(p, 200000);
        size_t at = 0;
        assert_int_equal(is_reserved(skip_frame(p->raw, p->raw_len, &at)), i == 0);
        if (i == 0)
            assert_int_equal(skip_frame(p->raw, p->raw_len, &at), 0x01); /* HEADERS */
    }
    assert_false(p->client.closed);
    pair_free(p);
}

/* RFC 9114 section 6.2.3: a peer may stop streams of unknown types. */
TEST(a_peer_may_stop_the_reserved_stream_and_no_critical_one) {
    pair *p = read_server_stream(SERVER_CONTROL, true);
    /* STOP_SENDING before the acknowledgement of the complete stream */
    const xl_event stopped = {.type = XL_EVENT_STREAM_STOPPED, .stream_id = SERVER_RESERVED, .error_code = 0x0103};
    h3_on_event(p->server.session, &stopped, p->now);
    run(p, 1000000);
    assert_false(p->client.closed);
    assert_int_equal(0, xl_stream_stop(p->client.connection, SERVER_CONTROL, 0x0103));
    run(p, 1000000);
    assert_true(p->client.closed);
    assert_int_equal(p->client.close_code, 0x0104); /* H3_CLOSED_CRITICAL_STREAM */
    pair_free(p);
}

TEST_MAIN(NULL, NULL)
