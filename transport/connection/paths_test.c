/* Path management on the virtual clock: which path acknowledgements take and what that means for RTTs. */
#include "connection/pair.h"

/* A path's rate in both directions, with 100 ms of queue. */
static void limit(pair_link *l, uint64_t mbps) {
    l->bytes_per_s[0] = l->bytes_per_s[1] = mbps * 125000;
    l->queue_us = 100000;
}

static void delay(pair_link *l, uint64_t one_way_us) {
    l->delay_us[0] = l->delay_us[1] = one_way_us;
}

/* Two paths of 20 Mbps, both validated. */
static void start(pair *p, uint64_t seed) {
    if (!p->client_config.scheduler || strcmp(p->client_config.scheduler, "xlink") != 0)
        pair_multipath(p, "minrtt", "none");
    for (size_t i = 0; i < p->link_count; i++)
        if (p->link[i].bytes_per_s[0] == 0)
            limit(&p->link[i], 20);
    pair_connect(p);
    pair_handshake(p);
    pair_run(p, 400000);
    for (size_t i = 0; i < p->link_count; i++)
        assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, i).state);
    (void)seed;
}

/* ---- acknowledgements on the fastest path ---- */

/* 10 ms and 80 ms one way. */
static void start_unequal(pair *p, uint64_t seed) {
    pair_init(p, seed, 2, 10000);
    delay(&p->link[1], 80000);
    p->client_config.ack_path = p->server_config.ack_path = XL_ACK_FASTEST;
    start(p, seed);
}

static void an_ack_from_elsewhere_does_not_poison_the_rtt(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 100);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 1500000);
    assert_false(p.request[i].done);
    /* There on the slow path, back on the fast one: 80 + 10 ms and what queues; the path itself takes 160. */
    assert_in_range(p.sc->path[1].rtt.min, 160000, 161000);
    assert_true(p.sc->path[1].rtt.smoothed >= 160000);
    assert_in_range(p.sc->path[1].ack_rtt.min, 90000, 92000);
    assert_in_range(p.sc->path[0].rtt.min, 20000, 21000);
    /* The fast path's acknowledgements come back on it: both are one. */
    assert_int_equal(p.sc->path[0].rtt.min, p.sc->path[0].ack_rtt.min);
    pair_free(&p);
}

static void the_rtt_stays_fresh_while_acks_come_from_elsewhere(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 101);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 500000);
    delay(&p.link[1], 180000); /* the path turns slower, which no acknowledgement can say */
    pair_run(&p, 3000000);
    assert_false(p.request[i].done);
    assert_true(p.sc->path[1].rtt.smoothed >= 240000);
    pair_free(&p);
}

static void with_acks_on_the_original_path_both_rtts_are_one(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 102, 2, 10000);
    delay(&p.link[1], 60000);
    start(&p, 102);
    assert_true(pair_finish(&p, pair_ask(&p, 5000000), 20000000) != UINT64_MAX);
    for (int k = 0; k < 2; k++)
        assert_memory_equal(&p.sc->path[k].rtt, &p.sc->path[k].ack_rtt, sizeof(xl_rtt));
    pair_free(&p);
}

static void the_fastest_path_carries_the_acks(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 103);
    size_t i = pair_ask(&p, 4000000);
    uint64_t before = p.link[1].packets[0];
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    assert_true(p.link[1].packets[1] > 700); /* data came on the slow path, too */
    assert_true(p.link[1].packets[0] - before < 60);
    pair_free(&p);
}

/* The fast path dies, one way or both: acknowledgements of what the slow one brings leave it within a probe timeout. */
static void acks_leave_a_path_that_has_gone_dark(void **state) {
    (void)state;
    for (int both = 0; both < 2; both++) {
        pair p;
        start_unequal(&p, 104);
        size_t i = pair_ask(&p, 20000000);
        pair_run(&p, 1000000);
        p.link[0].dark[0] = true;
        p.link[0].dark[1] = both;
        uint64_t pto = xl_rtt_pto(&p.cc->path[0].rtt, XL_MAX_ACK_DELAY_US);
        assert_true(pto < 150000);
        pair_run(&p, 2 * pto);
        uint64_t before = p.link[1].packets[0], brought = p.link[1].packets[1];
        pair_run(&p, 300000);
        assert_true(p.link[1].packets[1] - brought > 100);
        assert_true(2 * (p.link[1].packets[0] - before) > 100);
        assert_true(pair_server_path(&p, 1).state == XL_PATH_ACTIVE);
        assert_false(p.request[i].done);
        pair_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ack_from_elsewhere_does_not_poison_the_rtt),
        cmocka_unit_test(the_rtt_stays_fresh_while_acks_come_from_elsewhere),
        cmocka_unit_test(with_acks_on_the_original_path_both_rtts_are_one),
        cmocka_unit_test(the_fastest_path_carries_the_acks),
        cmocka_unit_test(acks_leave_a_path_that_has_gone_dark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
