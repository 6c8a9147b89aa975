/* Paths on the virtual clock: acknowledgements and RTTs, paths that come and go. */
#include "testing/paths.h"

/* ---- acknowledgements on the fastest path ---- */

/* 10 ms and 80 ms one way. */
static void start_unequal(pair *p, uint64_t seed) {
    pair_init(p, seed, 2, 10000);
    pair_delay(&p->link[1], 80000);
    p->client_config.scheme.ack_path = p->server_config.scheme.ack_path = XL_ACK_FASTEST;
    start(p);
}

PAIR_TEST(an_ack_from_elsewhere_does_not_poison_the_rtt) {
    start_unequal(p, 100);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 1500000);
    assert_false(p->request[i].done);
    /* Out on the slow path, back on the fast one: 80 + 10 ms and queueing. The slow path's own RTT is 160 ms. */
    assert_in_range(p->sc->path[1]->rtt.min, 160000, 161000);
    assert_true(p->sc->path[1]->rtt.smoothed >= 160000);
    assert_in_range(p->sc->path[1]->ack_rtt.min, 90000, 92000);
    assert_in_range(p->sc->path[0]->rtt.min, 20000, 21000);
    /* The fast path's acknowledgements come back on it: both RTTs are equal. */
    assert_int_equal(p->sc->path[0]->rtt.min, p->sc->path[0]->ack_rtt.min);
}

PAIR_TEST(the_rtt_stays_fresh_while_acks_come_from_elsewhere) {
    start_unequal(p, 101);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 500000);
    pair_delay(&p->link[1], 180000); /* the path gets slower, which no acknowledgement can show */
    pair_run(p, 3000000);
    assert_false(p->request[i].done);
    assert_true(p->sc->path[1]->rtt.smoothed >= 240000);
}

PAIR_TEST(with_acks_on_the_original_path_both_rtts_are_one) {
    pair_init(p, 102, 2, 10000);
    pair_delay(&p->link[1], 60000);
    start(p);
    assert_true(pair_finish(p, pair_ask(p, 5000000), 20000000) != UINT64_MAX);
    for (int k = 0; k < 2; k++)
        assert_memory_equal(&p->sc->path[k]->rtt, &p->sc->path[k]->ack_rtt, sizeof(xl_rtt));
}

PAIR_TEST(the_fastest_path_carries_the_acks) {
    start_unequal(p, 103);
    size_t i = pair_ask(p, 4000000);
    uint64_t before = p->link[1].packets[0];
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_true(p->link[1].packets[1] > 700); /* data came on the slow path, too */
    assert_true(p->link[1].packets[0] - before < 60);
}

/* The fast path dies, in one direction or both: within a probe timeout the acknowledgements of the slow path's packets
 * leave it. */
PAIR_TEST_EACH(acks_leave_a_path_that_has_gone_dark, int, both, 0, 2) {
    start_unequal(p, 104);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 1000000);
    p->link[0].dark[0] = true;
    p->link[0].dark[1] = both;
    uint64_t pto = xl_rtt_pto(&p->cc->path[0]->rtt, XL_MAX_ACK_DELAY_US);
    assert_true(pto < 150000);
    pair_run(p, 2 * pto);
    uint64_t before = p->link[1].packets[0], brought = p->link[1].packets[1];
    pair_run(p, 300000);
    assert_true(p->link[1].packets[1] - brought > 100);
    assert_true(2 * (p->link[1].packets[0] - before) > 100);
    assert_true(pair_server_path(p, 1).state == XL_PATH_ACTIVE);
    assert_false(p->request[i].done);
}

/* ---- paths that come and go ---- */

PAIR_TEST(a_path_comes_and_goes_in_mid_download) {
    pair_init(p, 120, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 30000000);
    uint64_t path_id = p->cc->path[1]->cids.remote_path_id;
    int index = 1;
    /* More often than there are slots: those of abandoned paths are reused. */
    for (int k = 0; k < 12; k++) {
        assert_int_equal(0, xl_connection_close_path(p->cc, index, p->now));
        pair_run(p, 300000);
        uint64_t before = p->link[1].bytes[1];
        pair_run(p, 200000);
        assert_true(p->link[1].bytes[1] - before < 5000);
        index = xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now);
        assert_in_range(index, 1, XL_MAX_PATHS - 1);
        pair_run(p, 300000);
        assert_int_equal(XL_PATH_ACTIVE, p->cc->path[index]->state);
        assert_true(p->cc->path[index]->cids.remote_path_id > path_id); /* a new path */
        path_id = p->cc->path[index]->cids.remote_path_id;
        assert_true(p->link[1].bytes[1] - before > 100000);
    }
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
    assert_false(p->client_closed);
}

PAIR_TEST(the_first_path_may_go_and_another_come) {
    pair_init(p, 121, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 8000000);
    pair_run(p, 500000);
    assert_int_equal(0, xl_connection_close_path(p->cc, 0, p->now));
    pair_run(p, 500000);
    int index = xl_connection_add_path(p->cc, &p->link[0].client, &p->link[0].server, XL_TECH_WIFI, p->now);
    assert_int_equal(2, index);
    pair_run(p, 300000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[2]->state);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
    assert_true(sent_on(p, 2) > 1000000);
}

/* Each end abandons the path that carries the other end's request. */
TEST(ends_that_close_each_others_last_path_end_the_connection) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        pair p;
        pair_init(&p, 148, 2, 10000);
        p.server_config.scheme.dialect = (xl_dialect)dialect;
        start(&p);
        pair_ask(&p, 1000000);
        pair_run(&p, 30000);
        assert_int_equal(0, xl_connection_close_path(p.cc, 0, p.now));
        assert_int_equal(0, xl_connection_close_path(p.sc, 1, p.now));
        pair_run(&p, 10000000);
        assert_true(p.client_closed && p.server_closed);
        assert_int_equal(0, p.client_close.error_code);
        assert_int_equal(0, p.server_close.error_code);
        pair_free(&p);
    }
}

/* As above, in an outage: other packets are lost before those with the requests, and probes repeat the oldest packet.
 * If the NAT of path 0 forgets the client, nothing from the server arrives there any more. */
static void close_each_others_path_in_an_outage(pair *p, xl_dialect dialect) {
    pair_init(p, 149, 2, 10000);
    p->server_config.scheme.dialect = dialect;
    p->client_config.limits.idle_timeout_us = p->server_config.limits.idle_timeout_us = 3600000000;
    start(p);
    pair_ask(p, 1000000);
    pair_run(p, 30000);
    pair_set_dark(&p->link[0], true);
    pair_set_dark(&p->link[1], true);
    pair_ask(p, 1000);
    pair_run(p, 1000000);
    assert_int_equal(0, xl_connection_close_path(p->cc, 0, p->now));
    assert_int_equal(0, xl_connection_close_path(p->sc, 1, p->now));
    pair_run(p, 5000000);
    for (size_t i = 0; i < 2; i++)
        pair_set_dark(&p->link[i], false);
}

PAIR_TEST_EACH(ends_that_close_each_others_path_in_an_outage_end_the_connection, int, i, 0, 4) {
    close_each_others_path_in_an_outage(p, i & 1 ? XL_DIALECT_IETF : XL_DIALECT_XLINK);
    if (i & 2)
        p->link[0].nat = pair_addr(200, 6000);
    pair_run(p, 10000000);
    assert_true(p->client_closed && p->server_closed);
    assert_int_equal(0, p->client_close.error_code);
    assert_int_equal(0, p->server_close.error_code);
    assert_string_equal("the last path was closed", p->client_close.reason);
}

TEST_MAIN(NULL, NULL)
