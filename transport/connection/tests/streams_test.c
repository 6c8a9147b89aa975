/* Streams that end before their data was read are forgotten, and their credit is returned (RFC 9000 sections 3.5 and
 * 4.5). And bytes that the application writes into the send buffer itself. */
#include "testing/pair.h"
#include "testing/test_random.h"

PAIR_TEST(a_stream_that_is_reset_before_it_was_read_is_forgotten) {
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    for (int k = 0; k < 40; k++) { /* more than may be open at once */
        uint64_t id;
        assert_int_equal(0, xl_stream_open(p->cc, false, &id));
        assert_int_equal(10, xl_stream_send(p->cc, id, (const uint8_t *)"unreadable", 10, false, NULL));
        pair_flush(p);
        assert_int_equal(0, xl_stream_reset(p->cc, id, 7)); /* arrives with the data */
        pair_run(p, 100000);
        assert_int_equal(0, p->cc->streams.count);
        assert_int_equal(0, p->sc->streams.count);
    }
}

/* The code has no encoding; a frame without it would end the connection. */
PAIR_TEST(an_error_code_beyond_a_varint_is_refused) {
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    uint64_t id;
    assert_int_equal(0, xl_stream_open(p->cc, true, &id));
    assert_int_equal(1, xl_stream_send(p->cc, id, (const uint8_t *)"x", 1, false, NULL));
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_reset(p->cc, id, XL_VARINT_MAX + 1));
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_stop(p->cc, id, UINT64_MAX));
    assert_int_equal(0, xl_stream_reset(p->cc, id, XL_VARINT_MAX));
    assert_int_equal(0, xl_stream_stop(p->cc, id, XL_VARINT_MAX));
    pair_run(p, 100000);
    assert_false(p->client_closed || p->server_closed);
    xl_connection_close(p->cc, UINT64_MAX, NULL, p->now);
    pair_run(p, 100000);
    assert_true(p->sc->closing.is_application && p->sc->closing.code == XL_VARINT_MAX);
}

PAIR_TEST(what_a_reset_stream_never_delivers_gives_its_credit_back) {
    static const uint8_t data[40000];
    pair_init(p, 2, 1, 10000);
    p->server_config.limits.max_data = 60000;
    pair_establish(p);
    p->link[0].dark[0] = true;
    for (int k = 0; k < 2; k++) {
        uint64_t id;
        assert_int_equal(0, xl_stream_open(p->cc, false, &id));
        xl_stream_send(p->cc, id, data, sizeof data, true, NULL);
        p->cc->path[0]->flight.probes = 60; /* all of it, whatever the window */
        pair_flush(p);
        assert_int_equal(0, xl_stream_reset(p->cc, id, 7));
    }
    assert_int_equal(0, xl_flow_out_left(&p->cc->streams.flow_out));
    p->link[0].dark[0] = false;
    pair_run(p, 5000000);
    assert_true(xl_flow_out_left(&p->cc->streams.flow_out) > 0);
    assert_true(pair_finish(p, pair_ask(p, 1000), 20000000) != UINT64_MAX);
}

PAIR_TEST(what_arrives_on_a_stopped_stream_gives_its_credit_back) {
    pair_init(p, 3, 1, 20000);
    p->client_config.limits.max_data = 10000; /* less than an initial window */
    pair_settle(p, 100000);
    size_t unwanted = pair_ask(p, 1000000);
    pair_run(p, 30000);
    assert_int_equal(0, xl_flow_out_left(&p->sc->streams.flow_out)); /* all is on its way */
    assert_int_equal(0, p->request[unwanted].received);
    assert_int_equal(0, xl_stream_stop(p->cc, p->request[unwanted].id, 9));
    assert_true(pair_finish(p, pair_ask(p, 50000), 20000000) != UINT64_MAX);
    assert_int_equal(0, p->request[unwanted].received);
    assert_int_equal(0, p->cc->streams.count);
}

PAIR_TEST(a_stream_that_is_stopped_when_all_of_it_has_come_is_forgotten) {
    pair_init(p, 4, 1, 10000);
    pair_establish(p);
    pair_request *q = &p->request[pair_ask(p, 5000)];
    q->used = false; /* nobody reads it */
    pair_run(p, 200000);
    assert_int_equal(1, p->cc->streams.count);
    uint64_t packets = p->link[0].packets[0];
    assert_int_equal(0, xl_stream_stop(p->cc, q->id, 9));
    assert_int_equal(0, p->cc->streams.count);
    pair_run(p, 200000);
    assert_int_equal(packets, p->link[0].packets[0]); /* there is nothing left to stop */
}

/* Opens a stream of a client whose handshake is complete. Returns its ID. */
static uint64_t open_stream(pair *p, uint64_t seed) {
    uint64_t id;
    pair_init(p, seed, 1, 10000);
    pair_settle(p, 100000);
    assert_int_equal(0, xl_stream_open(p->cc, false, &id));
    return id;
}

static uint8_t content(uint64_t offset) {
    return (uint8_t)(offset * 31 + offset / 251);
}

/* Writes up to `left` bytes of the stream, by xl_stream_send() or, at random, by xl_stream_reserve(). Returns how
 * many. */
static size_t write_some(pair *p, uint64_t id, uint64_t offset, size_t left, uint64_t *random) {
    uint8_t copy[3000], *at = copy;
    const size_t most = 1 + (size_t)test_below(random, sizeof copy), len = most < left ? most : left;
    const bool is_reserved = test_below(random, 2) == 0;
    ssize_t n = is_reserved ? xl_stream_reserve(p->sc, id, len, &at) : (ssize_t)len;
    assert_true(n >= 0 && n <= (ssize_t)len);
    for (ssize_t i = 0; i < n; i++)
        at[i] = content(offset + (uint64_t)i);
    const bool fin = (size_t)n == left;
    if (!is_reserved)
        n = xl_stream_send(p->sc, id, copy, (size_t)n, fin, NULL);
    else if (n > 0)
        assert_int_equal(0, xl_stream_commit(p->sc, id, (size_t)n, fin, NULL));
    assert_true(n >= 0);
    return (size_t)n;
}

/* Reads and checks what has come, and adds it to *received. */
static void read_all(pair *p, uint64_t id, uint64_t *received, bool *fin) {
    uint8_t buf[5000];
    ssize_t n;
    while ((n = xl_stream_read(p->cc, id, buf, sizeof buf, fin)) > 0)
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(content((*received)++), buf[i]);
}

PAIR_TEST(bytes_written_into_the_send_buffer_arrive_among_others) {
    const size_t total = 3000000;
    uint64_t random = 5, id, received = 0, written = 0;
    bool fin = false;
    pair_init(p, 5, 1, 10000);
    pair_settle(p, 100000);
    assert_int_equal(0, xl_stream_open(p->sc, false, &id));
    for (int round = 0; round < 3000 && !fin; round++) {
        size_t n = 1;
        while (n > 0 && written < total)
            written += n = write_some(p, id, written, total - written, &random);
        pair_flush(p);
        pair_run(p, 5000);
        read_all(p, id, &received, &fin);
    }
    assert_true(fin);
    assert_int_equal(total, received);
}

PAIR_TEST(what_was_not_reserved_is_not_taken) {
    const uint64_t id = open_stream(p, 6);
    uint8_t *at;
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_commit(p->cc, id, 1, false, NULL));
    assert_int_equal(100, xl_stream_reserve(p->cc, id, 100, &at));
    memset(at, 7, 100);
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_commit(p->cc, id, 101, false, NULL));
    assert_int_equal(0, xl_stream_commit(p->cc, id, 60, false, NULL));
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_commit(p->cc, id, 40, false, NULL)); /* not a second time */
    assert_int_equal(100, xl_stream_reserve(p->cc, id, 100, &at));
    assert_int_equal(0, xl_stream_commit(p->cc, id, 0, false, NULL));
    assert_int_equal(0, xl_stream_reserve(p->cc, id, 0, &at));
    assert_int_equal(0, xl_stream_commit(p->cc, id, 0, true, NULL)); /* the end alone */
    assert_int_equal(XL_ERR_STREAM_STATE, xl_stream_reserve(p->cc, id, 1, &at));
    assert_int_equal(XL_ERR_STREAM_STATE, xl_stream_commit(p->cc, id, 0, true, NULL));
    assert_int_equal(60, xl_conn_stream(p->cc, id)->send.written);
}

PAIR_TEST(a_reservation_does_not_outlive_a_write_or_a_reset) {
    const uint64_t id = open_stream(p, 7);
    uint8_t *at;
    assert_int_equal(100, xl_stream_reserve(p->cc, id, 100, &at));
    assert_int_equal(5, xl_stream_send(p->cc, id, (const uint8_t *)"12345", 5, false, NULL));
    assert_int_equal(XL_ERR_ARGUMENT, xl_stream_commit(p->cc, id, 100, false, NULL));
    assert_int_equal(100, xl_stream_reserve(p->cc, id, 100, &at));
    assert_int_equal(0, xl_stream_reset(p->cc, id, 7));
    assert_int_equal(XL_ERR_STREAM_STATE, xl_stream_commit(p->cc, id, 100, false, NULL));
}

TEST_MAIN(NULL, NULL)
