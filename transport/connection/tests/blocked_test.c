#include "testing/pair.h"

#include "connection/frames.h"
#include "connection/state.h"

/* Counts `words` in the server's log, which is complete when the server's connection was freed. */
static unsigned times_in_log(const pair *p, const char *words) {
    unsigned n = 0;
    for (const char *at = p->qlog.text; (at = strstr(at, words)); at += strlen(words))
        n++;
    return n;
}

static void start(pair *p, uint64_t seed, uint64_t max_data, uint64_t max_stream_data) {
    pair_init(p, seed, 1, 20000);
    pair_capture_qlog(p);
    p->client_config.limits.max_data = max_data;
    p->client_config.limits.max_stream_data = max_stream_data;
    pair_settle(p, 100000);
}

PAIR_TEST(a_sender_that_the_connections_limit_stops_says_so_once_a_limit) {
    start(p, 1, 10000, 1 << 20);
    assert_true(pair_finish(p, pair_ask(p, 50000), 20000000) != UINT64_MAX);
    xl_connection_free(p->sc);
    assert_int_equal(1, times_in_log(p, "{\"frame_type\":\"data_blocked\",\"limit\":10000}"));
    assert_in_range(times_in_log(p, "\"data_blocked\""), 4, 12); /* limits rise by half a window at least */
    assert_int_equal(0, times_in_log(p, "\"stream_data_blocked\""));
}

PAIR_TEST(a_sender_that_the_streams_limit_stops_says_so_once_a_limit) {
    start(p, 2, 1 << 20, 10000);
    assert_true(pair_finish(p, pair_ask(p, 50000), 20000000) != UINT64_MAX);
    xl_connection_free(p->sc);
    assert_int_equal(1, times_in_log(p, "{\"frame_type\":\"stream_data_blocked\",\"stream_id\":0,\"limit\":10000}"));
    assert_in_range(times_in_log(p, "\"stream_data_blocked\""), 4, 12);
    assert_int_equal(0, times_in_log(p, "\"data_blocked\""));
}

PAIR_TEST(who_is_not_stopped_says_nothing) {
    start(p, 3, 1 << 20, 1 << 20);
    assert_true(pair_finish(p, pair_ask(p, 300000), 20000000) != UINT64_MAX);
    xl_connection_free(p->sc);
    assert_int_equal(0, times_in_log(p, "data_blocked\""));
}

/* What the client does with a frame that says that a limit of 10000 bytes stops the server. */
static bool announces_again(pair *p, uint64_t type, const bool *pending) {
    const xl_frame f = {.type = type, .max = {.stream_id = 0, .maximum = 10000}};
    p->cc->now = p->now;
    assert_false(*pending);
    assert_int_equal(0, xl_conn_take_frame(p->cc, &f, &(xl_packet_context){.level = XL_LEVEL_APP}));
    return *pending;
}

static bool limits_are_raised(const pair *p, const xl_stream *s) {
    return s->recv_flow.limit > 10000 && p->cc->streams.flow_in.limit > 10000;
}

PAIR_TEST(a_limit_that_a_blocked_peer_lacks_for_a_round_trip_is_announced_again) {
    start(p, 6, 10000, 10000);
    pair_ask(p, 50000);
    const xl_stream *s = xl_conn_stream(p->cc, 0);
    for (const uint64_t end = p->now + 1000000; p->now < end && !limits_are_raised(p, s);)
        pair_step(p);
    p->link[0].dark[0] = p->link[0].dark[1] = true;
    pair_drop_queue(p);
    const bool *of_stream = &s->max_data_pending, *of_all = &p->cc->streams.max_data_pending;
    assert_false(announces_again(p, XL_FRAME_STREAM_DATA_BLOCKED, of_stream)); /* it may be on its way */
    assert_false(announces_again(p, XL_FRAME_DATA_BLOCKED, of_all));
    p->now += 45000;
    assert_true(announces_again(p, XL_FRAME_STREAM_DATA_BLOCKED, of_stream));
    assert_true(announces_again(p, XL_FRAME_DATA_BLOCKED, of_all));
}

/* Nobody reads, so that the limits do not rise. */
PAIR_TEST(a_lost_frame_is_sent_again_while_the_limit_stands) {
    start(p, 4, 10000, 10000);
    pair_request *q = &p->request[pair_ask(p, 50000)];
    q->used = false;
    pair_run(p, 30000); /* the request has arrived, and the answer is on its way */
    assert_int_equal(0, xl_flow_out_left(&p->sc->streams.flow_out));
    p->link[0].dark[1] = true;
    pair_drop_queue(p); /* all of it is lost */
    pair_run(p, 1000000);
    p->link[0].dark[1] = false;
    pair_run(p, 3000000);
    assert_int_equal(0, xl_flow_out_left(&p->sc->streams.flow_out));
    xl_connection_free(p->sc);
    assert_true(times_in_log(p, "{\"frame_type\":\"data_blocked\",\"limit\":10000}") >= 2);
    assert_true(times_in_log(p, "{\"frame_type\":\"stream_data_blocked\",\"stream_id\":0,\"limit\":10000}") >= 2);
}

PAIR_TEST(who_may_open_no_further_stream_says_so_once) {
    pair_init(p, 5, 1, 20000);
    pair_capture_qlog(p);
    p->server_config.limits.max_streams_bidi = 2;
    p->server_config.limits.max_streams_uni = 1;
    pair_establish(p);
    uint64_t id;
    for (int unidirectional = 0; unidirectional < 2; unidirectional++) {
        for (int i = 0; i < 2 - unidirectional; i++)
            assert_int_equal(0, xl_stream_open(p->cc, !unidirectional, &id));
        for (int i = 0; i < 3; i++)
            assert_int_equal(XL_ERR_STREAM_LIMIT, xl_stream_open(p->cc, !unidirectional, &id));
    }
    pair_run(p, 1000000);
    xl_connection_free(p->sc);
    assert_int_equal(2, times_in_log(p, "\"streams_blocked\""));
    assert_int_equal(1, times_in_log(p, "\"stream_type\":\"bidirectional\",\"limit\":2}"));
    assert_int_equal(1, times_in_log(p, "\"stream_type\":\"unidirectional\",\"limit\":1}"));
}

TEST_MAIN(NULL, NULL)
