/* Automatic path management on the virtual clock: standby by RTT or loss, abandonment, and return. */
#include "testing/pair.h"

/* Two paths of 3 Mbps, 10 ms one way, in the middle of a long download. */
static void start(pair *p, uint64_t seed, bool client, bool server) {
    pair_init_multipath(p, seed, 2, 10000);
    p->client_config.limits.path_management.enabled = client;
    p->server_config.limits.path_management.enabled = server;
    pair_capture_qlog(p);
    pair_limit(&p->link[0], 375000, 50000);
    pair_limit(&p->link[1], 375000, 50000);
    pair_settle(p, 200000);
    pair_ask(p, 200000000);
    pair_run(p, 1000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
}

/* Slows path 1 down in steps that no probe timeout takes for an outage. */
static void slow_down(pair *p) {
    for (uint64_t one_way_us = 40000; one_way_us <= 240000; one_way_us += 40000) {
        pair_delay(&p->link[1], one_way_us);
        pair_run(p, 200000);
    }
}

PAIR_TEST(a_slow_path_stands_by_until_it_is_fit_again) {
    start(p, 200, false, true);
    slow_down(p); /* not at once: the delay might pass */
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
    pair_run(p, 4000000);
    assert_int_equal(XL_PATH_STANDBY, pair_server_path(p, 1).state);
    assert_int_equal(XL_PATH_STANDBY, p->cc->path[1]->state); /* the client got PATH_STATUS */
    assert_non_null(strstr(p->qlog.text, "multipath:path_decision"));
    assert_non_null(strstr(p->qlog.text, "standby: RTT of "));
    pair_run(p, 5000000);
    assert_int_equal(XL_PATH_STANDBY, pair_server_path(p, 1).state);
    pair_delay(&p->link[1], 10000);
    pair_run(p, 1900000);
    assert_int_equal(XL_PATH_STANDBY, pair_server_path(p, 1).state);
    pair_run(p, 3000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
    assert_non_null(strstr(p->qlog.text, "available: fit for 2000 ms"));
}

PAIR_TEST(a_path_that_comes_and_goes_returns_later_each_time) {
    start(p, 201, false, true);
    uint64_t away[3];
    for (int k = 0; k < 3; k++) {
        pair_delay(&p->link[1], 250000);
        while (pair_server_path(p, 1).state != XL_PATH_STANDBY)
            assert_true(pair_step(p) && !p->request[0].done);
        pair_run(p, 1500000);
        pair_delay(&p->link[1], 10000);
        uint64_t from = p->now;
        while (pair_server_path(p, 1).state != XL_PATH_ACTIVE)
            assert_true(pair_step(p) && !p->request[0].done);
        away[k] = p->now - from;
    }
    assert_in_range(away[0], 2000000, 5000000);
    assert_in_range(away[1], 4000000, 7000000);
    assert_in_range(away[2], 8000000, 11000000);
}

PAIR_TEST(a_lossy_path_stands_by) {
    start(p, 202, false, true);
    p->link[1].loss = 0.15;
    while (pair_server_path(p, 1).state != XL_PATH_STANDBY)
        assert_true(pair_step(p) && !p->request[0].done);
    pair_run(p, 500000); /* the log is written in pieces */
    assert_non_null(strstr(p->qlog.text, "% of the packets lost"));
}

PAIR_TEST(losses_of_long_ago_are_not_held_against_a_path) {
    start(p, 206, false, true);
    p->link[1].loss = 0.3;
    while (pair_server_path(p, 1).state != XL_PATH_STANDBY)
        assert_true(pair_step(p) && !p->request[0].done);
    p->link[1].loss = 0;
    while (pair_server_path(p, 1).state != XL_PATH_ACTIVE)
        assert_true(pair_step(p) && !p->request[0].done);
    pair_run(p, 8000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
    assert_int_equal(1, p->sc->path[1]->watch.turns);
    assert_in_range(p->sc->path[1]->watch.loss_percent, 0, 5); /* of its last second */
}

PAIR_TEST(what_the_application_put_away_stays_away) {
    start(p, 207, false, true);
    p->sc->path[1]->watch.turns = 1; /* management had set it to standby before */
    assert_int_equal(0, xl_connection_set_path_status(p->sc, 1, XL_STATUS_STANDBY, p->now));
    pair_run(p, 10000000); /* good all the time */
    assert_int_equal(XL_PATH_STANDBY, pair_server_path(p, 1).state);
}

/* 32 times two seconds, after any number of turns. */
PAIR_TEST(the_time_away_does_not_double_without_end) {
    start(p, 208, false, true);
    p->sc->path[1]->watch.turns = 40;
    pair_delay(&p->link[1], 250000);
    while (pair_server_path(p, 1).state != XL_PATH_STANDBY)
        assert_true(pair_step(p) && !p->request[0].done);
    pair_delay(&p->link[1], 10000);
    pair_run(p, 64000000);
    assert_int_equal(XL_PATH_STANDBY, pair_server_path(p, 1).state);
    pair_run(p, 5000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
}

PAIR_TEST(the_only_usable_path_is_never_put_away) {
    start(p, 203, true, true);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 3000000);
    pair_delay(&p->link[1], 300000);
    p->link[1].loss = 0.2;
    pair_run(p, 8000000);
    xl_path_state is = pair_server_path(p, 1).state;
    assert_true(is == XL_PATH_ACTIVE || is == XL_PATH_SUSPECT);
    assert_false(p->client_closed);
}

PAIR_TEST(a_dead_path_is_abandoned_and_comes_back_with_a_new_id) {
    start(p, 204, true, false);
    uint64_t path_id = p->cc->path[1]->cids.remote_path_id;
    pair_set_dark(&p->link[1], true);
    pair_run(p, 8000000); /* dark, probed and suspect, but for less than 10 s */
    assert_int_equal(XL_PATH_SUSPECT, p->cc->path[1]->state);
    pair_run(p, 6000000);
    assert_int_equal(XL_PATH_CLOSED, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_CLOSED, pair_server_path(p, 1).state);
    assert_int_equal(XL_PATH_VALIDATING, p->cc->path[2]->state); /* opened again, and validating */
    pair_set_dark(&p->link[1], false);
    pair_run(p, 4000000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[2]->state);
    assert_true(p->cc->path[2]->cids.remote_path_id > path_id);
    assert_true(pair_server_path(p, 2).stream_bytes_sent > 200000);
}

/* All slots were in use once, so the new path can only take the old one's. */
PAIR_TEST(a_path_that_returns_to_its_own_place_has_its_addresses) {
    start(p, 208, true, false);
    for (int i = 2; i < XL_MAX_PATHS; i++)
        assert_int_equal(i, xl_connection_add_path(p->cc, &p->link[0].client, &p->link[0].server, XL_TECH_LTE, p->now));
    pair_run(p, 1000000);
    pair_set_dark(&p->link[1], true);
    pair_run(p, 16000000);
    assert_int_equal(XL_PATH_VALIDATING, p->cc->path[1]->state);
    assert_true(xl_addr_equal(&p->link[1].client, &p->cc->path[1]->local));
    assert_true(xl_addr_equal(&p->link[1].server, &p->cc->path[1]->remote));
    pair_set_dark(&p->link[1], false);
    pair_run(p, 6000000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[1]->state);
}

PAIR_TEST(nothing_of_this_happens_unless_asked_for) {
    start(p, 205, false, false);
    pair_delay(&p->link[1], 250000);
    pair_run(p, 6000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
    pair_set_dark(&p->link[1], true);
    pair_run(p, 20000000);
    assert_int_equal(XL_PATH_SUSPECT, pair_server_path(p, 1).state);
    assert_int_equal(2, p->cc->path_count);
    assert_null(strstr(p->qlog.text, "path_decision"));
}

TEST_MAIN(NULL, NULL)
