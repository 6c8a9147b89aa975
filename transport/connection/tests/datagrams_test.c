/* DATAGRAM frames (RFC 9221), and acknowledgements at the rate that the peer asks for. */
#include "testing/pair.h"

#include "connection/builder.h"
#include "connection/state.h"

#define MANY 200

static void configure(pair *p, uint64_t seed, size_t links, size_t frame_bytes) {
    pair_init(p, seed, links, 10000);
    p->client_config.limits.max_datagram_frame_bytes = p->server_config.limits.max_datagram_frame_bytes = frame_bytes;
    p->client_config.limits.enable_ack_frequency = p->server_config.limits.enable_ack_frequency = true;
}

static void start(pair *p) {
    pair_settle(p, 300000);
}

static int send_number(pair *p, uint64_t number, size_t len) {
    uint8_t data[PAIR_MTU] = {0};
    memcpy(data, &number, sizeof number);
    return xl_connection_send_datagram(p->sc, data, len, number, p->now);
}

/* Reads all datagrams that wait at the client. Marks their numbers in `has`; none may come twice. Returns how many. */
static unsigned read_numbers(pair *p, bool *has) {
    uint8_t data[PAIR_MTU];
    size_t len;
    unsigned n = 0;
    for (; xl_connection_read_datagram(p->cc, data, sizeof data, &len); n++) {
        uint64_t number;
        memcpy(&number, data, sizeof number);
        assert_in_range(number, 0, MANY - 1);
        assert_false(has[number]);
        has[number] = true;
    }
    return n;
}

PAIR_TEST(datagrams_arrive_and_are_acknowledged) {
    bool has[MANY] = {false};
    configure(p, 1, 1, 65535);
    start(p);
    size_t most = xl_connection_datagram_capacity(p->sc);
    assert_in_range(most, PAIR_MTU - 60, PAIR_MTU);
    assert_int_equal(send_number(p, 0, most), 0);
    assert_int_equal(send_number(p, 1, 8), 0);
    assert_int_equal(send_number(p, 2, most + 1), XL_ERR_ARGUMENT);
    pair_run(p, 100000);
    assert_int_equal(read_numbers(p, has), 2);
    assert_int_equal(p->datagrams_acked, 2);
    assert_int_equal(p->datagrams_lost, 0);
}

/* Over two lossy paths, beside a stream whose data is re-injected. */
PAIR_TEST(a_lost_datagram_is_reported_and_neither_sent_again_nor_re_injected) {
    bool has[MANY] = {false};
    unsigned arrived = 0;
    configure(p, 2, 2, 65535);
    pair_multipath(p, "minrtt", "appending");
    p->server_config.scheme.reinjection_unconditional = true;
    start(p);
    p->link[0].loss = p->link[1].loss = 0.2;
    size_t request = pair_ask(p, 300000);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(send_number(p, i, 400), 0);
        pair_run(p, 20000);
        arrived += read_numbers(p, has);
    }
    assert_true(pair_finish(p, request, 60000000) != UINT64_MAX);
    pair_run(p, 5000000);
    arrived += read_numbers(p, has);
    assert_in_range(arrived, MANY / 2, MANY - 10);
    assert_int_equal(p->datagrams_acked + p->datagrams_lost, MANY); /* each is either acknowledged or lost */
    assert_true(p->datagrams_acked <= arrived);
}

PAIR_TEST(datagrams_wait_for_the_congestion_window_in_a_bounded_queue) {
    configure(p, 3, 1, 65535);
    p->server_config.limits.datagram_queue_bytes = 100000;
    start(p);
    p->link[0].dark[0] = true; /* no acknowledgement comes back */
    uint64_t n = 0;
    while (send_number(p, n, 1000) == 0)
        assert_true(++n < 1000);
    assert_in_range(n, 80, 100);
    assert_int_equal(send_number(p, n, 1000), XL_ERR_QUEUE);
    uint64_t before = p->link[0].bytes[1];
    pair_run(p, 10000);
    assert_in_range(p->link[0].bytes[1] - before, 1000, xl_path_window(p->sc->path[0]));
}

PAIR_TEST(a_reader_that_does_not_read_keeps_a_bounded_queue) {
    bool has[MANY] = {false};
    configure(p, 4, 1, 65535);
    p->client_config.limits.datagram_queue_bytes = 10000;
    start(p);
    for (uint64_t i = 0; i < 50; i++) {
        send_number(p, i, 1000);
        pair_run(p, 20000);
    }
    xl_connection_stats stats;
    xl_connection_get_stats(p->cc, &stats);
    unsigned kept = read_numbers(p, has);
    assert_in_range(kept, 8, 10);
    assert_true(has[0]);
    assert_int_equal(stats.datagram_frames_dropped, 50 - kept);
    assert_int_equal(p->datagrams_acked, 50); /* the packet is acknowledged, even if the datagram is dropped */
}

PAIR_TEST(none_is_sent_to_a_peer_that_takes_none) {
    configure(p, 5, 1, 0);
    start(p);
    assert_int_equal(xl_connection_datagram_capacity(p->sc), 0);
    assert_int_equal(send_number(p, 0, 8), XL_ERR_ARGUMENT);
}

/* RFC 9221 section 3: the limit is for the whole frame, with its type and length. An empty one has two bytes. */
PAIR_TEST(not_even_an_empty_one_is_sent_to_a_peer_that_takes_one_byte) {
    configure(p, 5, 1, 1);
    start(p);
    assert_int_equal(xl_connection_datagram_capacity(p->sc), 0);
    int error = send_number(p, 0, 0);
    pair_run(p, 100000);
    assert_true(xl_conn_is_live(p->cc));
    assert_int_equal(error, XL_ERR_ARGUMENT);
}

PAIR_TEST(a_datagram_that_waits_while_the_mtu_falls_is_lost) {
    configure(p, 6, 1, 65535);
    start(p);
    size_t most = xl_connection_datagram_capacity(p->sc);
    assert_int_equal(send_number(p, 0, most), 0);
    xl_path_set_mtu(p->sc->path[0], 1200, p->now);
    pair_run(p, 100000);
    assert_int_equal(p->datagrams_lost, 1);
    assert_int_equal(p->datagrams_acked, 0);
}

/* ---- A peer that breaks rules, or asks for acknowledgements ---- */

static void deliver(pair *p, const uint8_t *frames, size_t len) {
    uint8_t packet[PAIR_MTU];
    xl_builder b;
    xl_conn_enter(p->cc, p->now);
    assert_true(xl_builder_begin(&b, p->cc, p->cc->path[0], XL_LEVEL_APP, packet, PAIR_MTU));
    xl_write_bytes(&b.w, frames, len);
    b.ack_eliciting = true;
    pair_inject(p, true, &p->link[0], packet, xl_builder_finish(&b));
}

TEST(a_datagram_that_was_not_allowed_is_a_violation) {
    static const struct {
        size_t limit, len;
        bool is_violation;
    } cases[] = {{0, 0, true}, {100, 97, false}, {100, 98, true}};
    for (size_t i = 0; i < 3; i++) {
        pair p;
        uint8_t frames[200] = {0};
        xl_writer w = xl_writer_of(frames, sizeof frames);
        configure(&p, 7, 1, cases[i].limit);
        start(&p);
        xl_frame_put_datagram_header(&w, cases[i].len);
        size_t header = (size_t)(w.p - frames);
        deliver(&p, frames, header + cases[i].len);
        assert_int_equal(xl_conn_is_live(p.sc), !cases[i].is_violation);
        assert_true(!cases[i].is_violation || p.sc->closing.code == XL_QERR_PROTOCOL_VIOLATION);
        pair_free(&p);
    }
}

static void ask_for_acks(pair *p, uint64_t sequence, uint64_t threshold, uint64_t max_delay_us) {
    uint8_t frames[64];
    xl_writer w = xl_writer_of(frames, sizeof frames);
    XL_FRAME_PUT(&w, XL_FRAME_ACK_FREQUENCY, sequence, threshold, max_delay_us, 0);
    deliver(p, frames, (size_t)(w.p - frames));
}

static void ping(pair *p, unsigned n, bool immediate) {
    uint8_t frames[64];
    for (; n > 0; n--) {
        xl_writer w = xl_writer_of(frames, sizeof frames);
        xl_write_varint(&w, XL_FRAME_PING);
        if (immediate)
            xl_write_varint(&w, XL_FRAME_IMMEDIATE_ACK);
        deliver(p, frames, (size_t)(w.p - frames));
        pair_run(p, 1000);
    }
}

static uint64_t sent_by_server(const pair *p) {
    return p->link[0].packets[1];
}

PAIR_TEST(acknowledgements_come_as_rarely_as_the_peer_asks) {
    configure(p, 8, 1, 0);
    start(p);
    uint64_t before = sent_by_server(p);
    ping(p, 8, false);
    assert_int_equal(sent_by_server(p) - before, 4);
    ask_for_acks(p, 0, 9, 30000);
    ask_for_acks(p, 0, 1, 30000); /* the same number: old */
    pair_run(p, 100000);
    before = sent_by_server(p);
    ping(p, 9, false);
    assert_int_equal(sent_by_server(p) - before, 0);
    ping(p, 1, false);
    assert_int_equal(sent_by_server(p) - before, 1);
    ping(p, 1, false);
    pair_run(p, 25000);
    assert_int_equal(sent_by_server(p) - before, 1);
    pair_run(p, 10000); /* the delay that was asked for */
    assert_int_equal(sent_by_server(p) - before, 2);
    ping(p, 1, true);
    assert_int_equal(sent_by_server(p) - before, 3);
}

TEST(a_delay_out_of_range_is_a_violation) {
    static const struct {
        uint64_t delay_us;
        bool is_valid;
    } cases[] = {{XL_MIN_ACK_DELAY_US - 1, false}, {XL_MIN_ACK_DELAY_US, true}, {16383999, true}, {16384000, false}};
    for (size_t i = 0; i < 4; i++) {
        pair p;
        configure(&p, 9, 1, 0);
        start(&p);
        ask_for_acks(&p, 0, 1, cases[i].delay_us);
        assert_int_equal(xl_conn_is_live(p.sc), cases[i].is_valid);
        assert_true(cases[i].is_valid || p.sc->closing.code == XL_QERR_PROTOCOL_VIOLATION);
        pair_free(&p);
    }
}

PAIR_TEST_EACH(without_negotiation_ack_frequency_is_of_unknown_type, int, i, 0, 2) {
    configure(p, 10, 1, 0);
    p->server_config.limits.enable_ack_frequency = false;
    start(p);
    if (i == 0)
        ask_for_acks(p, 0, 1, 25000);
    else
        ping(p, 1, true);
    assert_int_equal(p->sc->closing.code, XL_QERR_FRAME_ENCODING);
}

TEST_MAIN(NULL, NULL)
