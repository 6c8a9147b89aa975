#include "testing/pair.h"
#include "connection/room.h"

#define LOOK_AHEAD 65536

static const uint8_t zeros[200000];

static bool next_writable(pair *p, uint64_t *stream) {
    xl_event e;
    while (xl_endpoint_poll_event(p->server, &e)) {
        if (e.type == XL_EVENT_STREAM_WRITABLE) {
            *stream = e.stream_id;
            return true;
        }
    }
    return false;
}

/* The server has two streams to send on, a before b. */
static void connect_with_two_streams(pair *p, uint64_t *a, uint64_t *b) {
    pair_settle(p, 100000);
    assert_int_equal(0, xl_stream_open(p->sc, false, a));
    assert_int_equal(0, xl_stream_open(p->sc, false, b));
}

PAIR_TEST(streams_take_what_the_windows_can_take_and_some_more_the_first_one_first) {
    uint64_t a, b;
    pair_init(p, 1, 1, 10000);
    connect_with_two_streams(p, &a, &b);
    size_t all = (size_t)xl_path_window(p->sc->path[0]) + LOOK_AHEAD;
    assert_int_equal(all, xl_stream_send_capacity(p->sc, a));
    assert_int_equal(30000, xl_stream_send(p->sc, a, zeros, 30000, false, NULL));
    assert_int_equal(all - 30000, xl_stream_send_capacity(p->sc, b));
    assert_int_equal(all - 30000, xl_stream_send(p->sc, a, zeros, sizeof zeros, false, NULL));
    assert_int_equal(0, xl_stream_send_capacity(p->sc, a));
    assert_int_equal(0, xl_stream_send_capacity(p->sc, b));
    assert_int_equal(0, xl_stream_set_priority(p->sc, b, 0)); /* what a holds does not limit it any more */
    assert_int_equal(all, xl_stream_send_capacity(p->sc, b));
    xl_connection_close(p->sc, 0, NULL, p->now); /* a writer that goes on while there is room has to stop */
    assert_int_equal(XL_ERR_CLOSED, xl_stream_send(p->sc, b, zeros, 1, false, NULL));
    assert_int_equal(0, xl_stream_send_capacity(p->sc, b));
}

PAIR_TEST(room_that_one_stream_does_not_need_is_offered_to_the_next_at_once) {
    uint64_t a, b, asked;
    pair_init(p, 1, 1, 10000);
    p->client_config.limits.max_data = 1;
    connect_with_two_streams(p, &a, &b);
    assert_int_equal(1, xl_stream_send(p->sc, a, zeros, 20000, true, NULL));
    assert_int_equal(0, xl_stream_send(p->sc, b, zeros, 20000, true, NULL));
    xl_flow_out_raise(&p->sc->streams.flow_out, 1 << 20);
    xl_conn_offer_room(p->sc);
    assert_true(next_writable(p, &asked));
    assert_int_equal(a, asked);
    assert_false(next_writable(p, &asked));
    assert_int_equal(19999, xl_stream_send(p->sc, a, zeros, 19999, true, NULL));
    assert_true(next_writable(p, &asked));
    assert_int_equal(b, asked);
}

PAIR_TEST(the_application_is_not_asked_for_every_packet) {
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    uint64_t before = p->server->event_next, size = 5000000;
    assert_true(pair_finish(p, pair_ask(p, size), 60000000) != UINT64_MAX);
    assert_true(p->server->event_next - before <= size / 20000);
}

PAIR_TEST(of_a_fast_path_no_more_unsent_bytes_are_held_than_stay_in_a_cache) {
    uint64_t a;
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    assert_true(pair_finish(p, pair_ask(p, 5000000), 60000000) != UINT64_MAX);
    const xl_path *path = p->sc->path[0];
    assert_int_equal(0, xl_stream_open(p->sc, false, &a));
    assert_true(xl_path_window(path) > LOOK_AHEAD);
    assert_int_equal(xl_path_window(path) + LOOK_AHEAD, xl_stream_send_capacity(p->sc, a));
    p->sc->path[0]->pacer.rate = 500000000;
    assert_int_equal(2 * LOOK_AHEAD, xl_stream_send_capacity(p->sc, a));
}

TEST_MAIN(NULL, NULL)
