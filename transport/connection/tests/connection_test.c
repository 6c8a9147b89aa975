#include "testing/paths.h"

PAIR_TEST(handshake_takes_two_round_trips_until_it_is_confirmed) {
    pair_init(p, 1, 1, 20000);
    pair_establish(p);
    assert_non_null(p->sc);
    assert_true(p->cc->handshake.is_confirmed);
    assert_string_equal("h3", xl_connection_alpn(p->cc));
    assert_true(p->now - PAIR_START <= 81000);
    assert_false(xl_connection_is_multipath(p->cc));
}

PAIR_TEST(a_transfer_arrives_intact) {
    pair_init(p, 2, 1, 10000);
    limit(&p->link[0], 50);
    pair_establish(p);
    size_t i = pair_ask(p, 5000000);
    uint64_t took = pair_finish(p, i, 20000000);
    assert_true(took < 2000000); /* 0.8 s at line rate, plus slow start */
}

PAIR_TEST_EACH(a_transfer_survives_loss_and_reordering, uint64_t, seed, 10, 16) {
    pair_init(p, seed, 1, 15000);
    limit(&p->link[0], 40);
    p->link[0].loss = 0.03;
    p->link[0].reorder = 0.05;
    pair_establish(p);
    assert_non_null(p->sc);
    pair_transfer(p, 1000000, 60000000);
}

PAIR_TEST_EACH(the_handshake_survives_heavy_loss, uint64_t, seed, 30, 50) {
    pair_init(p, seed, 1, 15000);
    p->client_config.limits.handshake_timeout_us = p->server_config.limits.handshake_timeout_us = 30000000;
    p->link[0].loss = 0.3;
    pair_establish(p);
    assert_non_null(p->sc);
    p->link[0].loss = 0;
    pair_transfer(p, 10000, 60000000);
}

PAIR_TEST(multipath_uses_both_paths) {
    pair_init_multipath(p, 3, 2, 10000);
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_delay(&p->link[1], 30000);
    pair_settle(p, 200000);
    assert_true(xl_connection_is_multipath(p->cc));
    size_t i = pair_ask(p, 8000000);
    uint64_t took = pair_finish(p, i, 20000000);
    assert_true(took < 2600000); /* one path alone needs 3.3 s */
    assert_true(pair_server_path(p, 0).bytes_sent > 2000000);
    assert_true(pair_server_path(p, 1).bytes_sent > 2000000);
    assert_int_equal(0, p->sc->stats.reinjected_bytes);
}

PAIR_TEST(a_second_path_faster_than_the_first_opens_at_once) {
    pair_init_multipath(p, 19, 2, 80000);
    pair_delay(&p->link[1], 5000);
    pair_settle(p, 200000); /* its challenge overtakes the connection IDs that the first path carries */
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[1]->state);
}

PAIR_TEST(without_the_peer_multipath_falls_back_to_plain_quic) {
    pair_init_multipath(p, 4, 2, 10000);
    p->server_config.scheme.enable_multipath = false;
    pair_settle(p, 200000);
    assert_false(xl_connection_is_multipath(p->cc));
    pair_transfer(p, 100000, 5000000);
    assert_int_equal(0, p->link[1].packets[0] + p->link[1].packets[1]);
}

PAIR_TEST(a_path_that_goes_dark_does_not_stop_the_transfer) {
    pair_init_multipath(p, 5, 2, 10000);
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_settle(p, 200000);
    size_t i = pair_ask(p, 6000000);
    pair_run(p, 500000);
    pair_set_dark(&p->link[0], true);
    uint64_t took = pair_finish(p, i, 30000000);
    assert_true(took < 4000000);
    assert_int_equal(XL_PATH_SUSPECT, pair_server_path(p, 0).state);
    /* The path comes back. */
    pair_set_dark(&p->link[0], false);
    i = pair_ask(p, 6000000);
    uint64_t before = pair_server_path(p, 0).stream_bytes_sent;
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 0).state);
    assert_true(pair_server_path(p, 0).stream_bytes_sent > before + 500000);
}

/* Returns the time for 400 KB over two paths, of which the faster one goes dark just before the end. */
static uint64_t time_through_outage(const char *reinjection, xl_connection_stats *stats, uint64_t seed) {
    pair p;
    pair_init(&p, seed, 2, 10000);
    pair_multipath(&p, strcmp(reinjection, "none") ? "xlink" : "minrtt", reinjection);
    limit(&p.link[0], 20);
    limit(&p.link[1], 20);
    pair_delay(&p.link[1], 20000);
    pair_settle(&p, 200000);
    size_t warm = pair_ask(&p, 1000000);
    pair_finish(&p, warm, 10000000);
    size_t i = pair_ask(&p, 400000);
    pair_run(&p, 70000);
    p.link[0].dark[1] = true;
    uint64_t took = pair_finish(&p, i, 30000000);
    xl_connection_get_stats(p.sc, stats);
    pair_free(&p);
    return took;
}

TEST(reinjection_ends_head_of_line_blocking) {
    xl_connection_stats vanilla, xlink;
    for (uint64_t seed = 60; seed < 63; seed++) {
        uint64_t without = time_through_outage("none", &vanilla, seed);
        uint64_t with = time_through_outage("stream", &xlink, seed);
        assert_true(with != UINT64_MAX);
        assert_true(with < without);
        assert_int_equal(0, vanilla.reinjected_bytes);
        assert_true(xlink.reinjected_bytes > 0);
    }
}

PAIR_TEST_EACH(a_full_buffer_closes_the_gate, int, full, 0, 2) {
    pair_init(p, 6, 2, 10000);
    pair_multipath(p, "xlink", "stream");
    p->server_config.scheme.qoe_control = true;
    p->server_config.scheme.t_th1_us = 300000;
    p->server_config.scheme.t_th2_us = 1000000;
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_settle(p, 100000);
    xl_qoe qoe = {.cached_bytes = full ? 5000000 : 1000, .cached_frames = full ? 300 : 1, .bps = 4000000, .fps = 30};
    xl_connection_set_qoe(p->cc, &qoe, p->now);
    size_t warm = pair_ask(p, 50000);
    pair_finish(p, warm, 5000000);
    uint64_t before = p->sc->stats.reinjected_bytes;
    for (int k = 0; k < 5; k++) {
        xl_connection_set_qoe(p->cc, &qoe, p->now);
        pair_transfer(p, 300000, 5000000);
    }
    if (full)
        assert_int_equal(before, p->sc->stats.reinjected_bytes);
    else
        assert_true(p->sc->stats.reinjected_bytes > before);
}

PAIR_TEST(migration_moves_to_the_other_path_and_starts_its_window_anew) {
    pair_init(p, 7, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_establish(p);
    size_t i = pair_ask(p, 6000000);
    pair_run(p, 1000000);
    assert_int_equal(0, p->link[1].packets[0]);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 1000000); /* three probe timeouts of silence, then a round trip */
    assert_int_equal(1, p->client_migrations);
    assert_int_equal(1, p->server_migrations);
    assert_int_equal(1, p->sc->active);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_true(p->link[1].bytes[1] > 1000000);
    /* It returns when the second path dies, too. */
    pair_set_dark(&p->link[0], false);
    i = pair_ask(p, 6000000);
    pair_run(p, 500000);
    pair_set_dark(&p->link[1], true);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(2, p->client_migrations);
}

PAIR_TEST(single_path_waits_for_its_path) {
    pair_init(p, 8, 2, 15000);
    limit(&p->link[0], 20);
    pair_establish(p);
    size_t i = pair_ask(p, 3000000);
    pair_run(p, 300000);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 3000000);
    assert_false(p->request[i].done);
    pair_set_dark(&p->link[0], false);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(0, p->link[1].packets[0] + p->link[1].packets[1]);
}

PAIR_TEST(an_idle_connection_times_out) {
    pair_init(p, 9, 1, 10000);
    p->client_config.limits.idle_timeout_us = 5000000;
    pair_settle(p, 4000000);
    assert_false(p->client_closed);
    pair_run(p, 3000000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_IDLE_TIMEOUT);
    assert_true(p->server_closed && p->server_close.close_reason == XL_CLOSE_IDLE_TIMEOUT);
}

PAIR_TEST(an_idle_timeout_of_forever_never_comes) {
    pair_init(p, 9, 1, 10000);
    p->client_config.limits.idle_timeout_us = p->server_config.limits.idle_timeout_us = XL_NEVER;
    pair_settle(p, UINT64_C(3600000000));
    assert_false(p->client_closed || p->server_closed);
    pair_transfer(p, 100000, 5000000);
}

PAIR_TEST(close_reaches_the_peer_with_its_code_and_reason) {
    pair_init(p, 11, 1, 10000);
    pair_establish(p);
    xl_connection_close(p->cc, 0x101, "done", p->now);
    pair_run(p, 2000000);
    assert_true(p->server_closed && p->server_close.close_reason == XL_CLOSE_PEER && p->server_close.application_error);
    assert_int_equal(0x101, p->server_close.error_code);
    assert_string_equal("done", p->server_close.reason);
    assert_true(p->client_closed);
}

PAIR_TEST(a_silent_server_ends_in_a_timeout) {
    pair_init(p, 12, 1, 10000);
    p->link[0].dark[0] = true;
    pair_connect(p);
    pair_run(p, 29000000);
    assert_false(p->client_closed);
    pair_run(p, 2000000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_HANDSHAKE_TIMEOUT);
    assert_string_equal("handshake timed out", p->client_close.reason);
}

PAIR_TEST(a_half_open_connection_is_given_up) {
    pair_init(p, 20, 1, 10000);
    p->link[0].dark[1] = true; /* the client never gets the server's answer */
    pair_connect(p);
    pair_run(p, 36000000); /* the server's closing period included */
    assert_true(p->client_closed);
    assert_true(p->server_closed && p->server_close.close_reason == XL_CLOSE_HANDSHAKE_TIMEOUT);
}

/* The first datagram that the client sends. */
typedef struct {
    uint8_t data[PAIR_MTU];
    size_t len;
} first_datagram;

static void keep_first(void *user, bool to_server, uint8_t *data, size_t len) {
    first_datagram *first = user;
    if (!to_server || first->len > 0)
        return;
    memcpy(first->data, data, len);
    first->len = len;
}

/* Loses what the client sends after its first flight, so that only the client completes the handshake. */
static void lose_what_finishes_the_handshake(pair *p, first_datagram *first) {
    p->tamper = keep_first;
    p->tamper_user = first;
    pair_connect(p);
    pair_run(p, 1000);
    p->link[0].dark[0] = true;
    pair_run(p, 1000000);
    assert_true(p->cc->handshake.is_complete && !xl_connection_is_confirmed(p->cc));
}

PAIR_TEST(a_late_first_flight_makes_no_second_connection) {
    first_datagram first = {.len = 0};
    pair_init(p, 31, 1, 10000);
    p->client_config.limits.handshake_timeout_us = p->client_config.limits.confirm_timeout_us = 60000000;
    p->server_config.limits.handshake_timeout_us = 10000000;
    lose_what_finishes_the_handshake(p, &first);
    pair_run(p, 10000000);
    assert_false(p->client_closed || p->server_closed);
    pair_inject(p, true, &p->link[0], first.data, first.len);
    assert_int_equal(1, p->server->connections_begun);
    p->link[0].dark[0] = false;
    pair_run(p, 4000000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_PEER); /* by the server's close */
    assert_string_equal("handshake timed out", p->client_close.reason);
    assert_true(p->server_closed && p->server_close.close_reason == XL_CLOSE_HANDSHAKE_TIMEOUT);
}

PAIR_TEST(a_client_gives_up_what_is_not_confirmed) {
    first_datagram first = {.len = 0};
    pair_init(p, 32, 1, 10000);
    p->client_config.limits.confirm_timeout_us = 8000000;
    lose_what_finishes_the_handshake(p, &first);
    pair_run(p, 6900000);
    assert_false(p->client_closed);
    pair_run(p, 200000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_HANDSHAKE_TIMEOUT);
}

PAIR_TEST(probes_of_a_handshake_are_two_seconds_apart_at_most) {
    pair_init(p, 33, 1, 3000000); /* the first RTT sample is 6 s: one PTO would be 18 s */
    p->client_config.limits.confirm_timeout_us = 60000000;
    p->client_config.limits.handshake_timeout_us = p->server_config.limits.handshake_timeout_us = 60000000;
    pair_connect(p);
    pair_run(p, 1000);
    p->link[0].dark[0] = true;
    while (!p->cc->handshake.is_complete)
        pair_run(p, 100000);
    p->link[0].dark[1] = true;
    pair_run(p, 3000000); /* what was under way has arrived */
    uint64_t before = p->link[0].packets[0];
    pair_run(p, 10000000);
    assert_false(xl_connection_is_confirmed(p->cc));
    assert_in_range(p->link[0].packets[0] - before, 5, 10); /* each probe also has a 1-RTT packet */
}

PAIR_TEST(later_streams_wait_for_earlier_ones) {
    pair_init(p, 13, 1, 10000);
    limit(&p->link[0], 10);
    pair_establish(p);
    size_t first = pair_ask(p, 500000), second = pair_ask(p, 500000);
    assert_true(pair_finish(p, second, 10000000) != UINT64_MAX);
    assert_true(p->request[first].done);
    assert_true(p->request[first].done_at + 200000 < p->request[second].done_at);
}

PAIR_TEST(hundreds_of_streams_in_turn_stay_within_the_limits) {
    pair_init(p, 14, 2, 5000);
    pair_multipath(p, "xlink", "stream");
    pair_establish(p);
    for (int k = 0; k < 400; k++) {
        size_t i = pair_ask(p, 3000);
        assert_true(pair_finish(p, i, 5000000) != UINT64_MAX);
        p->request[i].used = false;
    }
    pair_run(p, 1000000);
    assert_int_equal(0, p->cc->streams.count);
    assert_int_equal(0, p->sc->streams.count);
}

PAIR_TEST(closing_a_path_retires_it_on_both_sides) {
    pair_init_multipath(p, 15, 2, 10000);
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_settle(p, 200000);
    size_t i = pair_ask(p, 4000000);
    pair_run(p, 300000);
    assert_int_equal(0, xl_connection_close_path(p->cc, 1, p->now));
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    pair_run(p, 500000);
    assert_int_equal(XL_PATH_CLOSED, pair_server_path(p, 1).state);
    assert_false(p->client_closed);
}

PAIR_TEST(both_sides_can_update_keys_in_mid_transfer) {
    pair_init_multipath(p, 16, 2, 10000);
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    p->link[0].reorder = 0.05;
    pair_settle(p, 200000);
    size_t i = pair_ask(p, 6000000);
    unsigned updates = 0;
    for (int k = 0; k < 12; k++) {
        pair_run(p, 100000);
        xl_connection *c = k % 2 ? p->cc : p->sc;
        if (xl_conn_may_update_keys(c)) {
            assert_int_equal(0, xl_conn_update_keys(c));
            updates++;
        }
    }
    assert_true(updates >= 3);
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_int_equal(p->cc->key_update.phase, p->sc->key_update.phase);
}

static void flip_bits(void *user, bool to_server, uint8_t *data, size_t len) {
    (void)to_server;
    xl_random *r = user;
    uint64_t v = xl_random_next(r);
    if (v % 5 == 0)
        data[(v >> 8) % len] ^= (uint8_t)(1u << (v >> 40) % 8);
}

PAIR_TEST_EACH(damaged_datagrams_are_dropped_and_repaired, uint64_t, seed, 70, 80) {
    xl_random r;
    xl_random_seed(&r, seed);
    pair_init(p, seed, 2, 10000);
    pair_multipath(p, "xlink", "stream");
    p->tamper = flip_bits;
    p->tamper_user = &r;
    pair_establish(p);
    assert_non_null(p->sc);
    pair_transfer(p, 300000, 120000000);
}

PAIR_TEST(garbage_does_not_move_an_endpoint) {
    pair_init(p, 17, 1, 10000);
    pair_establish(p);
    size_t connections = p->server->count;
    for (int k = 0; k < 20000; k++) {
        uint8_t data[1500];
        xl_datagram d = {.local = p->link[0].server, .remote = p->link[0].client};
        d.len = 1 + xl_random_next(&p->random) % 1400;
        xl_random_bytes(&p->random, data, d.len);
        if (k % 3 == 0) { /* looks like ours */
            data[0] = 0x40;
            memcpy(data + 1, p->sc->local_cids.at[0].cid.id, XL_LOCAL_CID_BYTES);
        } else if (k % 3 == 1) { /* looks like an Initial of version 1 */
            d.len = 1200;
            memcpy(data, "\xc3\0\0\0\1\x08", 6);
        }
        xl_endpoint_receive(p->server, &d, data, p->now);
        xl_endpoint_receive(p->client, &(xl_datagram){.local = d.remote, .remote = d.local, .len = d.len}, data,
                            p->now);
    }
    assert_int_equal(connections, p->server->count);
    pair_transfer(p, 100000, 20000000);
}

TEST(the_same_seed_gives_the_same_run) {
    uint64_t took[2], packets[2];
    for (int k = 0; k < 2; k++) {
        pair p;
        pair_init(&p, 18, 2, 10000);
        pair_multipath(&p, "xlink", "stream");
        p.link[0].loss = 0.02;
        pair_establish(&p);
        took[k] = pair_finish(&p, pair_ask(&p, 2000000), 20000000);
        packets[k] = p.link[0].packets[1] * 100000 + p.link[1].packets[1];
        pair_free(&p);
    }
    assert_int_equal(took[0], took[1]);
    assert_int_equal(packets[0], packets[1]);
}

TEST_MAIN(NULL, NULL)
