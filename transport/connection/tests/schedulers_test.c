/* The effect of schedulers on transfers, on the virtual clock. */
#include "connection/content.h"
#include "minmax.h"
#include "testing/pair.h"

/* Starts two paths of the same rate with different delays. The client's requests always go by min-RTT. */
static void start(pair *p, const char *scheduler, uint64_t mbps, uint64_t delay0_us, uint64_t delay1_us) {
    pair_init_multipath(p, 5, 2, delay0_us);
    p->server_config.scheme.scheduler = scheduler;
    pair_delay(&p->link[1], delay1_us);
    pair_limit(&p->link[0], mbps * 125000, 40000);
    pair_limit(&p->link[1], mbps * 125000, 40000);
}

static void connect_and_open(pair *p) {
    pair_settle(p, 3000000);
    assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, 1).state);
}

static uint64_t carried(pair *p, size_t path) {
    return pair_server_path(p, path).stream_bytes_sent;
}

static bool logged(const pair *p, const char *text) {
    return strstr(p->qlog.text, text) != NULL;
}

TEST(roundrobin_alternates_and_minrtt_does_not) {
    static const char *const names[] = {"minrtt", "roundrobin"};
    for (size_t k = 0; k < 2; k++) {
        pair p;
        start(&p, names[k], 20, 10000, 40000);
        pair_capture_qlog(&p);
        connect_and_open(&p);
        uint64_t before[] = {carried(&p, 0), carried(&p, 1)};
        for (int i = 0; i < 10; i++) { /* eight packets each: less than either window */
            assert_true(pair_finish(&p, pair_ask(&p, 8 * 1400), 5000000) != UINT64_MAX);
            pair_run(&p, 200000);
        }
        uint64_t on_first = carried(&p, 0) - before[0], on_second = carried(&p, 1) - before[1];
        if (k == 0) {
            assert_int_equal(0, on_second);
            assert_true(logged(&p, "smallest RTT"));
        } else {
            assert_in_range(on_first, 4 * 10 * 1400 * 9 / 10, 4 * 10 * 1400 * 11 / 10);
            assert_in_range(on_second, 4 * 10 * 1400 * 9 / 10, 4 * 10 * 1400 * 11 / 10);
            assert_true(logged(&p, "its turn"));
        }
        pair_free(&p);
    }
}

TEST(a_burst_goes_on_the_next_path_where_a_paced_one_is_passed_over) {
    static const char *const names[] = {"minrtt", "minrtt-passing"};
    uint64_t on_second[2];
    for (size_t k = 0; k < 2; k++) {
        pair p;
        start(&p, names[k], 20, 10000, 40000);
        connect_and_open(&p);
        uint64_t before = carried(&p, 1);
        for (int i = 0; i < 10; i++) { /* 24 packets each: more than a burst, less than the window of the first path */
            assert_true(pair_finish(&p, pair_ask(&p, 24 * 1400), 5000000) != UINT64_MAX);
            pair_run(&p, 200000);
        }
        on_second[k] = carried(&p, 1) - before;
        pair_free(&p);
    }
    assert_true(on_second[1] > on_second[0] + 10 * 1400);
}

/* Returns the time of a warm connection for `size` bytes when the first path goes dark both ways after_us into it. */
static uint64_t through_death(const char *scheduler, bool alone, uint64_t size, uint64_t after_us) {
    pair p;
    start(&p, scheduler, 10, 10000, 20000);
    if (alone) { /* only the path that survives */
        p.link[0] = p.link[1];
        p.link_count = 1;
    }
    pair_capture_qlog(&p);
    pair_settle(&p, 3000000);
    assert_true(pair_finish(&p, pair_ask(&p, 1000000), 60000000) != UINT64_MAX);
    pair_run(&p, 1000000);
    size_t i = pair_ask(&p, size);
    pair_run(&p, after_us);
    if (!alone)
        pair_set_dark(&p.link[0], true);
    uint64_t took = pair_finish(&p, i, 60000000);
    assert_true(took != UINT64_MAX);
    xl_connection_stats stats;
    xl_connection_get_stats(p.sc, &stats);
    bool redundant = !strcmp(scheduler, "redundant") && !alone;
    assert_int_equal(redundant, stats.reinjected_bytes > 0);
    assert_int_equal(redundant, logged(&p, "\"why\":\"redundant scheduler\""));
    /* Copies take no flow control credit, and while both paths lived, each carried nearly everything. */
    assert_true(p.sc->streams.flow_out.used < 1000000 + size + 1000);
    if (redundant)
        assert_in_range(stats.reinjected_bytes, 800000, 1000000 + size);
    pair_free(&p);
    return took;
}

TEST(redundant_takes_the_time_of_the_better_path_though_the_other_dies) {
    static const uint64_t sizes[] = {60000, 2000000}, after[] = {25000, 500000};
    for (size_t i = 0; i < 2; i++) {
        uint64_t alone = through_death("minrtt", true, sizes[i], after[i]);
        uint64_t both = through_death("redundant", false, sizes[i], after[i]);
        assert_true(both < alone + alone / 20);
        if (i == 0) /* what it lost on the dead path has to be detected first */
            assert_true(through_death("minrtt", false, sizes[i], after[i]) > both + both / 2);
    }
}

PAIR_TEST(redundant_never_copies_what_is_acknowledged) {
    start(p, "redundant", 20, 5000, 400000);
    /* A twentieth of the rate: nearly all is acknowledged before this path gets there. */
    pair_limit(&p->link[1], 125000, 40000);
    connect_and_open(p);
    uint64_t before = carried(p, 1);
    assert_true(pair_finish(p, pair_ask(p, 4000000), 60000000) != UINT64_MAX);
    pair_run(p, 10000000); /* its window opens long after the end, when nothing is left to send */
    assert_true(carried(p, 1) - before < 400000);
    assert_int_equal(p->sc->stats.reinjected_bytes,
                     pair_server_path(p, 0).reinjected_bytes + pair_server_path(p, 1).reinjected_bytes);
}

PAIR_TEST_EACH(redundant_repairs_loss_on_both_paths, uint64_t, seed, 0, 5) {
    start(p, "redundant", 20, 10000, 30000);
    xl_random_seed(&p->random, seed);
    connect_and_open(p);
    p->link[0].loss = p->link[1].loss = 0.05;
    for (int k = 0; k < 5; k++) { /* a request that ends with a packet of its own, and one that does not */
        assert_true(pair_finish(p, pair_ask(p, 100000), 20000000) != UINT64_MAX);
        assert_true(pair_finish(p, pair_ask(p, 10), 20000000) != UINT64_MAX);
    }
}

/* Returns the longest time of short transfers over warm paths. *slow_bytes: what the slow path carried. */
static uint64_t tail(const char *scheduler, size_t send_buffer, uint64_t *slow_bytes) {
    pair p;
    start(&p, scheduler, 10, 10000, 150000);
    if (send_buffer)
        p.server_config.limits.send_buffer_bytes = send_buffer;
    connect_and_open(&p);
    assert_true(pair_finish(&p, pair_ask(&p, 6000000), 60000000) != UINT64_MAX);
    pair_run(&p, 2000000);
    uint64_t before = carried(&p, 1), longest = 0;
    for (int k = 0; k < 5; k++) {
        uint64_t took = pair_finish(&p, pair_ask(&p, 250000), 60000000);
        longest = took > longest ? took : longest;
        pair_run(&p, 1000000);
    }
    *slow_bytes = carried(&p, 1) - before;
    pair_free(&p);
    return longest;
}

TEST(ecf_keeps_the_tail_off_the_slow_path) {
    uint64_t slow_minrtt, slow_ecf;
    uint64_t minrtt = tail("minrtt", 0, &slow_minrtt), ecf = tail("ecf", 0, &slow_ecf);
    assert_true(slow_minrtt > 50000);
    assert_true(slow_ecf < slow_minrtt / 10);
    assert_true(ecf + 30000 < minrtt); /* one-way delays: 10 and 150 ms */
}

TEST(blest_keeps_the_slow_path_out_of_a_small_send_window) {
    uint64_t slow_minrtt, slow_blest, slow_wide;
    uint64_t minrtt = tail("minrtt", 131072, &slow_minrtt), blest = tail("blest", 131072, &slow_blest);
    assert_true(slow_minrtt > 50000);
    assert_true(slow_blest < slow_minrtt / 10);
    assert_true(blest < minrtt * 3 / 4);
    /* A send buffer of megabytes blocks nothing: BLEST is min-RTT. */
    tail("minrtt", 0, &slow_minrtt);
    tail("blest", 0, &slow_wide);
    assert_int_equal(slow_minrtt, slow_wide);
}

TEST(long_transfers_use_both_paths_under_every_scheduler) {
    for (size_t k = 0; xl_scheduler_name(k); k++) {
        if (xl_scheduler_is_reference(xl_scheduler_name(k)))
            continue;
        pair p;
        start(&p, xl_scheduler_name(k), 10, 10000, 20000);
        connect_and_open(&p);
        uint64_t took = pair_finish(&p, pair_ask(&p, 5000000), 60000000);
        if (!p.sc->scheduler->copies)
            assert_true(took < 3200000); /* one path needs 4.1 s, two 2.05 s */
        assert_true(carried(&p, 0) > 1500000 && carried(&p, 1) > 1500000);
        pair_free(&p);
    }
}

TEST(the_fast_path_dies_while_the_scheduler_waits_for_it) {
    static const char *const waiting[] = {"blest", "ecf"};
    for (size_t k = 0; k < 2; k++) {
        pair p;
        start(&p, waiting[k], 10, 10000, 150000);
        p.server_config.limits.send_buffer_bytes = k == 0 ? 131072 : 0;
        pair_capture_qlog(&p);
        connect_and_open(&p);
        assert_true(pair_finish(&p, pair_ask(&p, 6000000), 60000000) != UINT64_MAX);
        pair_run(&p, 2000000);
        size_t i = pair_ask(&p, 250000);
        while (!(p.sc->decision.count == 0 && p.sc->decision.waits_for == 0 && xl_content_has_unsent(p.sc)))
            assert_true(pair_step(&p) && !p.request[i].done);
        pair_set_dark(&p.link[0], true);
        assert_true(pair_finish(&p, i, 10000000) < 3000000);
        assert_true(logged(&p, "multipath:scheduler_waits"));
        assert_true(carried(&p, 1) > 100000);
        pair_free(&p);
    }
}

static void always_wait(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    *out = (xl_scheduler_decision){.waits_for = view->path[0].index, .why = "contrary"};
}

PAIR_TEST(a_scheduler_that_never_sends_cannot_stop_a_connection) {
    static const xl_scheduler_ops contrary = {.name = "contrary", .decide = always_wait};
    start(p, "minrtt", 10, 10000, 20000);
    pair_capture_qlog(p);
    connect_and_open(p);
    p->sc->scheduler = &contrary;
    size_t i = pair_ask(p, 50000);
    pair_run(p, 500000);
    pair_set_dark(&p->link[0], true); /* not even when a path dies besides */
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
    assert_true(logged(p, "nothing to wait for"));
}

static void prefer_the_first(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state, (void)view;
    out->count = 1;
    out->order[0] = 0;
}

PAIR_TEST(a_scheduler_sends_no_more_than_the_window_allows) {
    static const xl_scheduler_ops greedy = {.name = "greedy", .decide = prefer_the_first};
    start(p, "minrtt", 10, 10000, 20000);
    connect_and_open(p);
    p->sc->scheduler = &greedy;
    size_t i = pair_ask(p, 1000000);
    /* A loss makes the window smaller than what is in flight already. */
    for (uint64_t step = 0, widest = 0; step < 200; step++) {
        pair_run(p, 1000);
        widest = xl_max(widest, xl_path_window(p->sc->path[0]));
        assert_true(p->sc->path[0]->flight.bytes <= widest);
    }
    assert_false(p->request[i].done);
    pair_set_dark(&p->link[0], true); /* nor does it stay with a path that has died */
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

static void decide_nothing(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state, (void)view, (void)out;
}

PAIR_TEST(a_decision_that_is_not_made_is_none) {
    static const xl_scheduler_ops idle = {.name = "idle", .decide = decide_nothing};
    start(p, "minrtt", 10, 10000, 20000);
    pair_capture_qlog(p);
    connect_and_open(p);
    p->sc->decision.count = 1; /* as after the decision before */
    p->sc->scheduler = &idle;
    assert_true(pair_finish(p, pair_ask(p, 50000), 60000000) != UINT64_MAX);
    assert_true(logged(p, "nothing to wait for"));
}

static void decide_out_of_range(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    out->count = 2;
    out->order[0] = 0;
    out->order[1] = view->count;
}

static void decide_too_many(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state, (void)view;
    out->count = XL_MAX_PATHS + 1;
}

TEST(a_path_that_the_view_does_not_have_ends_the_connection_with_one_sentence) {
    static const struct {
        xl_scheduler_ops ops;
        const char *words;
    } cases[] = {
        {{.name = "beyond", .decide = decide_out_of_range},
         "scheduler beyond: a member of order is 2, but the view has 2 paths"},
        {{.name = "many", .decide = decide_too_many}, "scheduler many: count is 9, but the view has 2 paths"},
    };
    for (size_t k = 0; k < 2; k++) {
        pair p;
        start(&p, "minrtt", 10, 10000, 20000);
        connect_and_open(&p);
        p.sc->scheduler = &cases[k].ops;
        pair_ask(&p, 50000);
        pair_run(&p, 1000000);
        assert_string_equal(cases[k].words, p.server_close.reason);
        assert_string_equal(cases[k].words, p.client_close.reason); /* the peer gets the reason */
        pair_free(&p);
    }
}

TEST_MAIN(NULL, NULL)
