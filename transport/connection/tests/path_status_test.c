/* PATH_STATUS on the virtual clock. */
#include "testing/paths.h"
#include "connection/path_status.h"

PAIR_TEST_EACH(a_standby_path_carries_no_data_and_stays_validated, int, by_server, 0, 2) {
    pair_init(p, 110, 2, 10000);
    start(p);
    xl_connection *who = by_server ? p->sc : p->cc;
    assert_int_equal(0, xl_connection_set_path_status(who, 1, XL_STATUS_STANDBY, p->now));
    pair_run(p, 100000);
    assert_int_equal(XL_PATH_STANDBY, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
    uint64_t before = sent_on(p, 1), packets = p->link[1].packets[1];
    assert_true(pair_finish(p, pair_ask(p, 8000000), 20000000) >= 3200000); /* the time of one path */
    assert_int_equal(before, sent_on(p, 1));
    assert_in_range(p->link[1].packets[1] - packets, 2, 20); /* it was probed */
    assert_true(p->sc->path[1]->validation.is_done);
    assert_true(p->now - p->sc->path[1]->last_received_at < 1200000);
    /* Available again, by the side that asked for standby, and used. */
    assert_int_equal(0, xl_connection_set_path_status(who, 1, XL_STATUS_AVAILABLE, p->now));
    assert_true(pair_finish(p, pair_ask(p, 8000000), 20000000) < 2600000);
    assert_true(sent_on(p, 1) > before + 2000000);
}

TEST(a_status_that_does_not_exist_is_refused) {
    pair p;
    pair_init(&p, 110, 2, 10000);
    start(&p);
    assert_int_equal(XL_ERR_ARGUMENT, xl_connection_set_path_status(p.cc, 1, (xl_path_status)7, p.now));
    pair_run(&p, 100000);
    assert_false(p.client_closed);
    pair_free(&p);
}

/* The first path began with the 1200 bytes of the handshake, which has no lasting effect. */
TEST(the_first_path_is_as_good_as_later_ones) {
    for (size_t i = 0; xl_cc_name(i); i++) {
        pair p;
        pair_init(&p, 112 + i, 2, 10000);
        p.client_config.scheme.cc = p.server_config.scheme.cc = xl_cc_name(i);
        pair_multipath(&p, "minrtt", "none");
        pair_connect(&p);
        assert_true(xl_connection_add_path(p.cc, &p.link[1].client, &p.link[1].server, XL_TECH_LTE, p.now) > 0);
        pair_handshake(&p);
        pair_run(&p, 100000);
        xl_connection *const ends[] = {p.cc, p.sc};
        for (size_t end = 0; end < 2; end++) {
            xl_path *first = ends[end]->path[0], *second = ends[end]->path[1];
            assert_int_equal(PAIR_MTU, first->mtu);
            assert_int_equal(second->mtu, first->mtu);
            assert_true(xl_path_window(first) >= 10 * PAIR_MTU && xl_path_window(second) >= 10 * PAIR_MTU);
            assert_int_equal(second->pacer.burst, first->pacer.burst);
            first->cc.ops->on_persistent_congestion(first->cc.state, p.now);
            second->cc.ops->on_persistent_congestion(second->cc.state, p.now);
            assert_int_equal(xl_path_window(second), xl_path_window(first)); /* as many packets, of one size */
            assert_int_equal(0, xl_path_window(first) % PAIR_MTU);
        }
        pair_free(&p);
    }
}

PAIR_TEST(an_idle_connection_does_not_keep_a_standby_path_awake) {
    pair_init(p, 111, 2, 10000);
    p->client_config.limits.idle_timeout_us = 5000000;
    start(p);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
    pair_run(p, 6000000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_IDLE_TIMEOUT);
}

PAIR_TEST_EACH(a_standby_path_takes_over_when_the_available_one_fails, int, abandoned, 0, 2) {
    pair_init(p, 112, 2, 10000);
    start(p);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
    pair_run(p, 100000);
    size_t i = pair_ask(p, 6000000);
    pair_run(p, 1000000);
    uint64_t before = sent_on(p, 1), pto = xl_rtt_pto(&p->sc->path[0]->rtt, XL_MAX_ACK_DELAY_US);
    pair_set_dark(&p->link[0], true);
    if (abandoned)
        assert_int_equal(0, xl_connection_set_path_status(p->sc, 0, XL_STATUS_ABANDON, p->now));
    /* Dark: after the two probe timeouts that make a path suspect (one, and one doubled). Abandoned: at once. */
    pair_run(p, abandoned ? 50000 : 3 * pto + 50000);
    assert_true(sent_on(p, 1) > before);
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
}

/* While both are dark, neither is suspect, since there is no healthy one. When one answers, the other becomes suspect,
 * with nothing in flight. */
PAIR_TEST(a_path_that_is_given_up_when_another_answers_is_still_asked) {
    pair_init(p, 126, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 500000);
    pair_set_dark(&p->link[0], true);
    pair_set_dark(&p->link[1], true);
    pair_run(p, 2000000);
    pair_set_dark(&p->link[0], false);
    pair_run(p, 2500000);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[0]->state);
    assert_int_equal(XL_PATH_SUSPECT, p->sc->path[1]->state);
    pair_set_dark(&p->link[1], false);
    uint64_t before = sent_on(p, 1);
    pair_run(p, 2500000);
    assert_false(p->request[i].done);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    assert_true(sent_on(p, 1) > before + 100000);
}

PAIR_TEST(each_side_takes_back_only_its_own_request) {
    pair_init(p, 113, 2, 10000);
    start(p);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
    xl_connection_set_path_status(p->sc, 1, XL_STATUS_STANDBY, p->now);
    pair_run(p, 100000);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_AVAILABLE, p->now);
    pair_run(p, 100000);
    assert_int_equal(XL_PATH_STANDBY, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
    xl_connection_set_path_status(p->sc, 1, XL_STATUS_AVAILABLE, p->now);
    pair_run(p, 100000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
}

PAIR_TEST(only_a_newer_status_counts) {
    pair_init(p, 114, 2, 10000);
    start(p);
    xl_frame f = {.type = XL_FRAME_PATH_STATUS};
    f.path_status.path_id = p->sc->path[1]->cids.local_path_id;
    f.path_status.sequence = 5;
    f.path_status.status = XL_STATUS_STANDBY;
    assert_int_equal(0, xl_conn_take_path_status(p->sc, &f));
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
    f.path_status.status = XL_STATUS_AVAILABLE;
    assert_int_equal(0, xl_conn_take_path_status(p->sc, &f)); /* the same number again */
    f.path_status.sequence = 4;
    f.path_status.status = XL_STATUS_ABANDON;
    assert_int_equal(0, xl_conn_take_path_status(p->sc, &f)); /* an old one that comes late */
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
    f.path_status.sequence = 6;
    f.path_status.status = XL_STATUS_AVAILABLE;
    assert_int_equal(0, xl_conn_take_path_status(p->sc, &f));
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    f.path_status.path_id = 77; /* no such path: ignored */
    f.path_status.status = XL_STATUS_ABANDON;
    assert_int_equal(0, xl_conn_take_path_status(p->sc, &f));
}

PAIR_TEST(a_lost_status_is_sent_again_but_only_the_latest) {
    pair_init(p, 115, 2, 10000);
    start(p);
    p->link[0].dark[0] = p->link[1].dark[0] = true;
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
    pair_run(p, 5000);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_AVAILABLE, p->now);
    pair_run(p, 5000);
    xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
    pair_run(p, 200000);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    p->link[0].dark[0] = p->link[1].dark[0] = false;
    pair_run(p, 1000000);
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
    assert_int_equal(3, p->sc->path[1]->statuses.peer_sequence);
}

PAIR_TEST(a_request_for_a_path_under_validation_waits_for_it) {
    pair_init_multipath(p, 116, 2, 10000);
    pair_set_dark(&p->link[1], true);
    pair_settle(p, 100000);
    assert_int_equal(0, xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now));
    pair_run(p, 1000000);
    pair_set_dark(&p->link[1], false);
    pair_run(p, 3000000);
    assert_int_equal(XL_PATH_STANDBY, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_STANDBY, p->sc->path[1]->state);
}

TEST(a_status_needs_a_path_and_multipath) {
    pair p;
    pair_init(&p, 117, 2, 10000);
    pair_establish(&p);
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 0, XL_STATUS_STANDBY, p.now));
    pair_free(&p);
    pair_init(&p, 117, 2, 10000);
    start(&p);
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 2, XL_STATUS_STANDBY, p.now));
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, -1, XL_STATUS_STANDBY, p.now));
    assert_int_equal(0, xl_connection_close_path(p.cc, 1, p.now));
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 1, XL_STATUS_AVAILABLE, p.now));
    pair_free(&p);
}

/* A status that was sent twice is confirmed twice, the second time when another path is in the place of its path. */
PAIR_TEST(a_status_is_confirmed_for_its_own_path_alone) {
    pair_init(p, 146, 2, 10000);
    start(p);
    assert_int_equal(0, xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now));
    pair_flush(p);
    p->cc->path[1]->cids.remote_path_id += 5; /* another path, whose status has the same number */
    pair_run(p, 60000);
    assert_false(p->cc->path[1]->statuses.is_confirmed);
    p->cc->path[1]->cids.remote_path_id -= 5;
}

TEST_MAIN(NULL, NULL)
