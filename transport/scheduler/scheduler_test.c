#include <string.h>

#include "tests/unit.h"
#include "scheduler/scheduler.h"

#define MTU 1000

static xl_scheduler_view view_of(size_t n, const uint64_t *srtt_us) {
    xl_scheduler_view v = {.count = n, .now = 1000000};
    for (size_t i = 0; i < n; i++)
        v.path[i] = (xl_scheduler_path){
            .index = (int)i, .has_window = true, .srtt_us = srtt_us[i], .has_rtt = true, .mtu_bytes = MTU};
    return v;
}

typedef struct {
    const xl_scheduler_ops *ops;
    max_align_t state[XL_SCHEDULER_STATE_BYTES / sizeof(max_align_t)];
} instance;

static instance instance_of(const char *name) {
    instance s = {.ops = xl_scheduler_find(name)};
    assert_non_null(s.ops);
    if (s.ops->init)
        s.ops->init(s.state);
    return s;
}

static xl_scheduler_decision decision_of(instance *s, const xl_scheduler_view *v) {
    xl_scheduler_decision d;
    memset(&d, 0xee, sizeof d); /* contents of an earlier decision */
    s->ops->decide(s->state, v, &d);
    assert_true(d.count <= v->count);
    return d;
}

static size_t order_of(const char *name, const xl_scheduler_view *v, size_t *order) {
    instance s = instance_of(name);
    xl_scheduler_decision d = decision_of(&s, v);
    memcpy(order, d.order, sizeof d.order);
    return d.count;
}

static const char *const by_rtt[] = {"minrtt", "xlink"};

TEST(smallest_rtt_goes_first) {
    size_t order[XL_MAX_PATHS], want[] = {1, 3, 2, 0};
    for (size_t k = 0; k < 2; k++) {
        xl_scheduler_view v = view_of(4, (uint64_t[]){90000, 20000, 50000, 20000});
        assert_int_equal(4, order_of(by_rtt[k], &v, order));
        assert_memory_equal(want, order, sizeof want);
    }
}

/* Expects that the scheduler waits for path 0, or else takes only path 1. */
static xl_scheduler_decision expect_wait(instance *s, const xl_scheduler_view *v, bool waits) {
    xl_scheduler_decision d = decision_of(s, v);
    assert_int_equal(waits ? 0 : 1, d.count);
    assert_int_equal(waits ? 0 : -1, d.waits_for);
    if (waits)
        assert_non_null(d.why);
    else
        assert_int_equal(1, d.order[0]);
    return d;
}

static void expect_first(const char *name, const xl_scheduler_view *v, size_t count, size_t first) {
    size_t order[XL_MAX_PATHS];
    assert_int_equal(count, order_of(name, v, order));
    assert_int_equal(first, order[0]);
}

TEST(a_full_window_passes_to_the_next) {
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    v.path[0].has_window = false;
    instance s = instance_of("minrtt");
    assert_null(expect_wait(&s, &v, false).why); /* the smallest RTT needs no reason */
    v.path[1].has_window = false;
    assert_int_equal(0, order_of("minrtt", &v, order));
}

TEST(a_suspect_path_is_used_only_when_nothing_else_is_left) {
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    v.path[0].is_suspect = true;
    expect_first("minrtt", &v, 1, 1);
    v.path[1].has_window = false; /* rather wait for the healthy one */
    assert_int_equal(0, order_of("minrtt", &v, order));
    v.path[1].is_suspect = true;
    expect_first("minrtt", &v, 1, 0);
}

TEST(a_standby_path_waits_behind_available_ones) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    v.path[0].is_standby = true;
    expect_first("xlink", &v, 1, 1);
    v.path[1].is_suspect = true; /* standby and answering beats available and silent */
    expect_first("xlink", &v, 1, 0);
}

TEST(roundrobin_takes_turns) {
    xl_scheduler_view v = view_of(3, (uint64_t[]){20000, 90000, 50000});
    instance s = instance_of("roundrobin");
    for (int packet = 0; packet < 9; packet++) {
        xl_scheduler_decision d = decision_of(&s, &v);
        assert_int_equal(3, d.count);
        assert_int_equal(packet % 3, d.order[0]);
        assert_int_equal((packet + 1) % 3, d.order[1]);
        s.ops->sent(s.state, packet % 3, MTU);
    }
    v.path[0].has_window = false; /* loses its turn, keeps its place */
    assert_int_equal(1, decision_of(&s, &v).order[0]);
    s.ops->sent(s.state, 2, MTU);
    v.path[0].has_window = true;
    assert_int_equal(0, decision_of(&s, &v).order[0]);
}

TEST(redundant_offers_every_healthy_path) {
    xl_scheduler_view v = view_of(3, (uint64_t[]){90000, 20000, 50000});
    v.path[2].is_suspect = true;
    expect_first("redundant", &v, 2, 1);
    const xl_scheduler_ops *redundant = xl_scheduler_find("redundant");
    assert_true(redundant->copies && redundant->passes_paced);
}

/* Path 0 is fast and has used up its window; path 1 is slow and has room. RTTs in ms, windows in packets of MTU
 * bytes. */
static xl_scheduler_view fast_is_full(uint64_t rtt_f, uint64_t cwnd_f, uint64_t rtt_s, uint64_t cwnd_s) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){rtt_f * 1000, rtt_s * 1000});
    v.path[0].has_window = false;
    v.path[0].window_bytes = v.path[0].in_flight_bytes = cwnd_f * MTU;
    v.path[1].window_bytes = cwnd_s * MTU;
    v.unsent_bytes = 50 * MTU;
    v.send_window_bytes = 1000 * MTU;
    return v;
}

TEST(blest_waits_where_the_fast_path_would_be_blocked) {
    /* RTT_F 10 ms, cwnd_F 10, RTT_S 50 ms: rtts = 5, X = (10 + (5 - 1) / 2) 5 = 60 packets; lambda is 1.2: 72. */
    static const struct {
        uint64_t window, slow_in_flight;
        bool waits;
    } cases[] = {
        {200, 0, false},  {73, 0, false},  {72, 0, true},   {60, 0, true},
        {100, 27, false}, {100, 28, true}, {100, 99, true}, {100, 150, true}, /* more in flight than the window */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        instance s = instance_of("blest");
        xl_scheduler_view v = fast_is_full(10, 10, 50, 10);
        v.now = 10; /* within a slow round trip of the start: lambda stays */
        v.send_window_bytes = cases[i].window * MTU;
        v.path[1].in_flight_bytes = cases[i].slow_in_flight * MTU;
        expect_wait(&s, &v, cases[i].waits);
    }
}

TEST(blest_corrects_its_estimate_once_in_a_slow_round_trip) {
    instance s = instance_of("blest");
    xl_scheduler_view v = fast_is_full(10, 10, 50, 10);
    v.send_window_bytes = 68 * MTU; /* X = 60 packets, and one is to be sent: waits while lambda > 67 / 60 = 1.1167 */
    v.now = 10;
    assert_int_equal(0, decision_of(&s, &v).count);
    /* 1.20 goes down by 0.01 in each slow round trip without blocking: 1.11 after nine. */
    for (int round = 1; round <= 9; round++) {
        assert_int_equal(0, decision_of(&s, &v).count);
        v.now += 50000;
        for (int again = 0; again < 3; again++) /* however often it decides within one */
            assert_int_equal(round < 9 ? 0 : 1, decision_of(&s, &v).count);
    }
    v.is_window_blocked = true; /* up by 0.04 */
    v.now += 50000;
    assert_int_equal(0, decision_of(&s, &v).count);
    v.is_window_blocked = false;
    for (int round = 0; round < 3; round++) { /* 1.15, 1.14, 1.13, 1.12 */
        v.now += 50000;
        assert_int_equal(0, decision_of(&s, &v).count);
    }
    v.now += 50000;
    assert_int_equal(1, decision_of(&s, &v).count);
}

/* Whether BLEST, with X = 60 packets and after `rounds` slow round trips, waits when `left` packets are left. */
static bool blest_waits_after(int rounds, bool blocked, uint64_t left) {
    instance s = instance_of("blest");
    xl_scheduler_view v = fast_is_full(10, 10, 50, 10);
    v.is_window_blocked = blocked;
    for (int k = 0; k < rounds; k++, v.now += 50000)
        decision_of(&s, &v);
    v.send_window_bytes = (left + 1) * MTU;
    return decision_of(&s, &v).count == 0;
}

TEST(blest_keeps_its_correction_within_limits) {
    assert_true(blest_waits_after(100, true, 77)); /* lambda is 1.3: 78 */
    assert_false(blest_waits_after(100, true, 79));
    assert_true(blest_waits_after(100, false, 59)); /* 1.0: 60 */
    assert_false(blest_waits_after(100, false, 60));
}

TEST(blest_remembers_that_it_was_blocked_in_between) {
    instance s = instance_of("blest");
    xl_scheduler_view v = fast_is_full(10, 10, 50, 10);
    v.now = 10;
    v.is_window_blocked = true;
    decision_of(&s, &v);
    v.is_window_blocked = false;
    v.now += 50000;
    v.send_window_bytes = 74 * MTU; /* 1.24 x 60 = 74.4, where 1.19 x 60 = 71.4 */
    assert_int_equal(0, decision_of(&s, &v).count);
}

TEST(ecf_waits_where_the_fast_path_completes_earlier) {
    static const struct {
        uint64_t rtt_f, rtt_s, unsent, sigma_f, sigma_s;
        bool waits;
    } cases[] = {
        {10, 100, 1, 0, 0, true},    /* 2 x 10 < 100, 100 >= 20: the last packet waits for the fast path */
        {10, 100, 50, 0, 0, true},   /* 6 x 10 < 100 */
        {10, 100, 89, 0, 0, true},   /* 9.9 x 10 < 100 */
        {10, 100, 90, 0, 0, false},  /* 10 x 10 = 100: both are needed */
        {10, 100, 500, 0, 0, false}, /* a long way to go */
        {10, 20, 1, 0, 0, false},    /* 2 x 10 = 20: paths too much alike */
        {10, 21, 1, 0, 0, true},     /* 20 < 21 and 21 >= 20 */
        {10, 25, 1, 0, 10, false},   /* 20 < 35, but 25 < 20 + 10: S may arrive before F answers */
        {10, 30, 1, 0, 10, true},    /* 30 >= 30 */
        {10, 30, 1, 10, 0, true},    /* the larger of the variations, whichever path's */
        {10, 30, 1, 11, 10, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        instance s = instance_of("ecf");
        xl_scheduler_view v = fast_is_full(cases[i].rtt_f, 10, cases[i].rtt_s, 10);
        v.unsent_bytes = cases[i].unsent * MTU;
        v.path[0].rttvar_us = cases[i].sigma_f * 1000;
        v.path[1].rttvar_us = cases[i].sigma_s * 1000;
        assert_non_null(expect_wait(&s, &v, cases[i].waits).why);
    }
}

TEST(ecf_goes_on_waiting_by_a_quarter_longer) {
    instance s = instance_of("ecf");
    xl_scheduler_view v = fast_is_full(10, 10, 100, 10);
    v.unsent_bytes = 110 * MTU; /* 12 x 10 = 120 ms: more than 100, less than 125 */
    assert_int_equal(1, decision_of(&s, &v).count);
    v.unsent_bytes = 50 * MTU;
    assert_int_equal(0, decision_of(&s, &v).count);
    v.unsent_bytes = 110 * MTU;
    assert_int_equal(0, decision_of(&s, &v).count);
    v.unsent_bytes = 115 * MTU; /* 125: over, and the hysteresis is off again */
    assert_int_equal(1, decision_of(&s, &v).count);
    v.unsent_bytes = 110 * MTU;
    assert_int_equal(1, decision_of(&s, &v).count);
}

TEST(nobody_waits_for_a_path_that_does_not_answer) {
    static const char *const waiting[] = {"blest", "ecf"};
    for (size_t i = 0; i < 2; i++) {
        instance s = instance_of(waiting[i]);
        xl_scheduler_view v = fast_is_full(10, 10, 100, 10);
        v.send_window_bytes = 20 * MTU;
        expect_wait(&s, &v, true);
        v.path[0].pto_count = 1; /* overdue */
        expect_wait(&s, &v, false);
        v.path[0].pto_count = 0;
        v.path[0].is_suspect = true;
        expect_wait(&s, &v, false);
        v.path[0].is_suspect = false;
        v.path[0].in_flight_bytes = 0; /* nothing to be acknowledged */
        expect_wait(&s, &v, false);
        v.path[0].in_flight_bytes = MTU;
        v.unsent_bytes = 0; /* only copies left: they need not wait */
        expect_wait(&s, &v, false);
    }
}

/* As expect_wait(), with the two paths swapped. */
static void expect_wait_in_the_other_order(const char *name, xl_scheduler_view v, bool waits) {
    xl_scheduler_path fast = v.path[0];
    v.path[0] = v.path[1];
    v.path[1] = fast;
    instance s = instance_of(name);
    xl_scheduler_decision d = decision_of(&s, &v);
    assert_int_equal(waits ? 0 : 1, d.count);
    assert_int_equal(waits ? fast.index : -1, d.waits_for);
}

TEST(a_full_path_is_waited_for_whatever_its_place) {
    xl_scheduler_view v = fast_is_full(10, 10, 100, 10);
    v.send_window_bytes = 20 * MTU;
    expect_wait_in_the_other_order("blest", v, true);
    expect_wait_in_the_other_order("ecf", v, true);
    v.path[0].pto_count = 1;
    expect_wait_in_the_other_order("blest", v, false);
    expect_wait_in_the_other_order("ecf", v, false);
}

/* Sets the smallest RTT and the time queue_us until all packets in flight are acknowledged. If not 0, a queue shows:
 * the latest RTT is twice the smallest, and so is the age of the oldest packet. */
static void set_queue(xl_scheduler_path *p, uint64_t min_rtt_us, uint64_t queue_us) {
    p->min_rtt_us = min_rtt_us;
    p->latest_rtt_us = p->oldest_us = queue_us > 0 ? 2 * min_rtt_us : 0;
    p->queue_us = queue_us;
    p->in_flight_bytes = queue_us > 0 ? 10 * MTU : 0;
}

TEST(earliest_goes_by_what_is_in_flight_rather_than_by_the_last_rtt) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 0);
    set_queue(&v.path[1], 50000, 0); /* there after 25 ms */
    expect_first("earliest", &v, 2, 0);
    set_queue(&v.path[0], 20000, 42500); /* there after 32.5 ms: later, but not by more than three tenths */
    expect_first("earliest", &v, 2, 0);
    set_queue(&v.path[0], 20000, 42501);
    expect_first("earliest", &v, 2, 1);
    set_queue(&v.path[0], 20000, XL_NEVER); /* nothing comes back */
    expect_first("earliest", &v, 1, 1);
}

/* Requests of a few round trips: the bytes acknowledged lately are all that was sent, so the rate looks small. */
TEST(earliest_leaves_no_fast_path_for_its_rate_while_no_queue_shows) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 140000);
    set_queue(&v.path[1], 50000, 0);
    v.path[0].latest_rtt_us = v.path[0].oldest_us = 33000; /* 5/4 of the smallest, and 8 ms */
    expect_first("earliest", &v, 2, 0);
    v.path[0].latest_rtt_us = 33001; /* packets wait somewhere */
    expect_first("earliest", &v, 2, 1);
    v.path[0].latest_rtt_us = 33000;
    v.path[0].oldest_us = 33001; /* an acknowledgement is overdue */
    expect_first("earliest", &v, 2, 1);
}

/* The packets in flight may fill the path before a queue shows in an RTT. */
TEST(earliest_goes_by_the_capacity_while_no_queue_shows) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 0);
    set_queue(&v.path[1], 50000, 0);
    v.path[0].in_flight_bytes = 10 * MTU;
    v.path[0].oldest_us = 5000; /* 15 ms to the first acknowledgement */
    v.path[0].drain_us = 27500; /* there after 15 + 27.5 - 10 ms */
    expect_first("earliest", &v, 2, 0);
    v.path[0].drain_us = 27501;
    expect_first("earliest", &v, 2, 1);
}

TEST(earliest_commits_no_more_than_a_short_queue_while_there_is_a_choice) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 170001);
    set_queue(&v.path[1], 50000, 200000);
    instance s = instance_of("earliest");
    expect_wait(&s, &v, false);
    v.path[1].queue_us = 200001;
    expect_wait(&s, &v, true);
    v.path[1].in_flight_bytes = 10 * MTU - 1; /* so few packets are always permitted: they measure the rate */
    expect_wait(&s, &v, false);
    v.path[1].in_flight_bytes = 10 * MTU;
    v.path[0].is_suspect = true; /* no choice is left */
    expect_wait(&s, &v, false);
}

/* Others' packets stay in the queue for as long as the path waits. */
TEST(earliest_counts_no_delay_by_others_to_the_queue) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 260000);
    set_queue(&v.path[1], 50000, 260000);
    instance s = instance_of("earliest");
    expect_wait(&s, &v, true);
    v.path[1].cross_us = 59999;
    expect_wait(&s, &v, true);
    v.path[1].cross_us = 60000;
    expect_wait(&s, &v, false);
}

/* In slow start the path may be faster than was ever measured. */
TEST(earliest_limits_no_queue_by_a_bound_of_the_capacity) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 170001);
    set_queue(&v.path[1], 50000, 0);
    v.path[1].in_flight_bytes = 10 * MTU;
    v.path[1].drain_us = 200001;
    instance s = instance_of("earliest");
    expect_wait(&s, &v, true);
    v.path[1].is_capacity_bound = true;
    expect_wait(&s, &v, false);
}

TEST(earliest_waits_for_a_full_path_that_alone_completes_earlier) {
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 100000});
    set_queue(&v.path[0], 20000, 20000); /* 10 packets in 20 ms */
    set_queue(&v.path[1], 100000, 0);
    v.path[0].has_window = false;
    v.unsent_bytes = 20 * MTU - 1;
    instance s = instance_of("earliest");
    expect_wait(&s, &v, true); /* 10 ms + 40 ms, less than 50 ms */
    expect_wait_in_the_other_order("earliest", v, true);
    v.unsent_bytes = 20 * MTU;
    expect_wait(&s, &v, false); /* too much for one path */
    v.unsent_bytes = MTU;
    v.path[0].pto_count = 1; /* a path that does not answer is not waited for */
    expect_wait(&s, &v, false);
    v.path[0].pto_count = 0;
    set_queue(&v.path[0], 20000, 0); /* held back by its pacer alone: no acknowledgement is under way */
    expect_wait(&s, &v, false);
}

TEST(earliest_uses_another_path_beside_a_paced_one_for_what_that_brings_later) {
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, (uint64_t[]){20000, 50000});
    set_queue(&v.path[0], 20000, 0);
    set_queue(&v.path[1], 50000, 0);
    v.path[0].is_paced = true;
    v.path[0].pacing_bytes_per_s = 1000000;
    v.unsent_bytes = 22501; /* alone 10 + 22.501 ms; three tenths more than 25 ms are 32.5 ms */
    expect_first("earliest", &v, 2, 0);
    v.unsent_bytes = 22500;
    expect_first("earliest", &v, 1, 0);
    v.path[0].is_paced = false; /* it gets the next packet, and the other one copies */
    assert_int_equal(2, order_of("earliest", &v, order));
    assert_true(xl_scheduler_find("earliest")->passes_paced);
}

TEST(names_are_listed_and_found) {
    size_t count = 0;
    for (; xl_scheduler_name(count); count++) { /* no name occurs twice: find() returns the first */
        assert_ptr_equal(xl_schedulers[count], xl_scheduler_find(xl_scheduler_name(count)));
        assert_non_null(xl_schedulers[count]->decide);
    }
    assert_true(count >= 7);
    assert_string_equal(xl_scheduler_name(0), "minrtt");
    assert_null(xl_scheduler_find("fastest"));
    assert_null(xl_scheduler_find(NULL));
}

TEST_MAIN(NULL, NULL)
