#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "emulator/link/testing/bench.h"
#include "emulator/link/rng.h"

#define FAST "1\n1\n1\n1\n1\n1\n1\n1\n"
#define MANY 200000u

/* Sends packets 1 to count, 1 ms apart, and reports which of them departed. */
static link_stats run(link_config config, uint32_t count, uint8_t *departed) {
    link_bench *b = bench_new(FAST, config);
    memset(departed, 0, count + 1);
    for (uint32_t n = 1; n <= count + 1000; n++) {
        if (n <= count)
            bench_send(b, 0, n, 104, n * MS);
        link_advance(b->link, n * MS);
        for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
            departed[numbered_number(p)]++;
            link_departed(b->link, p, n * MS);
        }
    }
    bench_check_balance(b);
    link_stats stats = link_get_stats(b->link);
    assert_int_equal(stats.inside_packets, 0);
    bench_free(b);
    return stats;
}

static uint8_t one[MANY + 1], two[MANY + 1];

/* p 0.01, r 0.25: the bad state has a share of p / (p + r) = 1/26 of the time, and lasts 1/r = 4 packets on average.
 * The standard deviation of the share over n packets is sqrt(pi_g pi_b (2 - p - r) / (p + r) / n) = 0.00111, that of
 * the mean of some 7,700 bursts sqrt(1 - r) / r / sqrt(7700) = 0.0395. The bounds are four standard deviations. */
TEST(gilbert_elliott_has_its_stationary_loss_and_burst_length) {
    link_stats s = run((link_config){.loss = {.bad = 1.0, .p = 0.01, .r = 0.25}, .seed = 1}, MANY, one);
    uint32_t lost = 0, bursts = 0;
    for (uint32_t n = 1; n <= MANY; n++) {
        lost += one[n] == 0;
        bursts += one[n] == 0 && (n == 1 || one[n - 1] != 0);
    }
    assert_int_equal(lost, s.random_losses);
    assert_true(fabs((double)lost / MANY - 1.0 / 26) < 4 * 0.00111);
    assert_true(fabs((double)lost / bursts - 4.0) < 4 * 0.0395);
}

/* 0.02 in the good state and 0.5 in the bad state, half of the time each: 0.26. */
TEST(both_states_of_gilbert_elliott_have_their_loss) {
    link_stats s = run((link_config){.loss = {.good = 0.02, .bad = 0.5, .p = 0.1, .r = 0.1}, .seed = 5}, MANY, one);
    assert_true(fabs((double)s.random_losses / MANY - 0.26) < 0.01);
}

TEST(an_effect_that_is_switched_on_leaves_the_losses_as_they_are) {
    const link_config losses = {.loss = {.good = 0.01, .bad = 0.5, .p = 0.02, .r = 0.2}, .seed = 9};
    link_config all = losses;
    all.duplicate = 0.2;
    all.jitter_us = 3000;
    all.delay_us = 5000;
    all.queue = "pie";
    all.onoff = (link_onoff){.is_random = true, .count = 2, .us = {500 * MS, 50 * MS}};
    run(losses, 20000, one);
    link_stats s = run(all, 20000, two);
    uint32_t off = 0;
    for (uint32_t n = 1; n <= 20000; n++) {
        assert_false(one[n] == 0 && two[n] != 0);
        off += one[n] != 0 && two[n] == 0;
    }
    assert_true(s.duplicates > 0 && off > 0 && off <= s.off_losses);
}

/* A link with means of 300 and 100 ms is off for 1/4 of the time, measured by a packet per ms. The standard deviation
 * over some 500 periods is 0.25 * 0.75 * sqrt(2 / 500) = 0.012, and the bound is five of them. */
TEST(on_and_off_take_turns_by_exponential_times) {
    const link_onoff onoff = {.is_random = true, .count = 2, .us = {300 * MS, 100 * MS}};
    link_stats s = run((link_config){.onoff = onoff, .seed = 3}, MANY, one);
    assert_true(fabs((double)s.off_losses / MANY - 0.25) < 0.06);
    run((link_config){.onoff = onoff, .seed = 3, .loss = {.good = 0.5}}, MANY, two);
    for (uint32_t n = 1; n <= MANY; n++) /* the same outages with other losses */
        assert_false(one[n] == 0 && two[n] != 0);
}

/* Exponential times have the mean that was set, and a share of 1 - 1/e is shorter than the mean. Some 1000 times of
 * each kind: standard deviations of 3 % and 1.5 %, and bounds of four of them. */
TEST(on_and_off_last_as_long_as_they_should) {
    const link_onoff onoff = {.is_random = true, .count = 2, .us = {60 * MS, 40 * MS}};
    link_onoff_state s;
    link_onoff_init(&s, &onoff, 11);
    uint64_t sum[2] = {0}, shorter[2] = {0}, bursts[2] = {0}, since = 0;
    bool was_on = true;
    for (uint64_t now = 0; now < 100 * S; now += 100) {
        bool is_on = link_onoff_advance(&s, now);
        if (is_on != was_on) {
            size_t i = was_on ? 0 : 1;
            sum[i] += now - since;
            shorter[i] += now - since < onoff.us[i];
            bursts[i]++;
            since = now;
        }
        was_on = is_on;
    }
    for (size_t i = 0; i < 2; i++) {
        assert_true(fabs((double)sum[i] / (double)(bursts[i] * onoff.us[i]) - 1.0) < 0.12);
        assert_true(fabs((double)shorter[i] / (double)bursts[i] - 0.632) < 0.06);
    }
}

/* On for 5 ms, off for 3, on for 2, off for 1. A packet that comes at the ms of a switch finds the new state. */
TEST(on_and_off_follow_a_schedule) {
    const link_onoff onoff = {.count = 4, .us = {5 * MS, 3 * MS, 2 * MS, 1 * MS}};
    static const uint8_t on[11] = {1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0};
    run((link_config){.onoff = onoff}, 1000, one);
    for (uint32_t n = 1; n <= 1000; n++)
        assert_int_equal(one[n], on[n % 11]);
}

TEST(the_queue_goes_on_while_the_link_is_off) {
    link_bench *b = bench_new("10\n20\n30\n", (link_config){.onoff = {.count = 2, .us = {5 * MS, 100 * MS}}});
    bench_send_many(b, 1, 2, 1504, 1 * MS);
    bench_send_many(b, 3, 1, 1504, 6 * MS);
    BENCH_EXPECT(b, 40 * MS, {1, 10 * MS}, {2, 20 * MS});
    assert_int_equal(link_get_stats(b->link).off_losses, 1);
    bench_free(b);
}

static link_steps parse_delays(const char *text) {
    link_steps trace;
    char error[256] = "";
    assert_true(link_text_parse(&link_delay_trace_form, &trace, "d", text, strlen(text), error, sizeof error));
    return trace;
}

TEST(a_delay_trace_is_a_step_function) {
    link_steps trace = parse_delays("10,5\n20,7.5\n40,1\n");
    static const struct {
        uint64_t at_ms, looped_us, held_us;
    } cases[] = {{0, 5000, 5000},  {10, 5000, 5000},  {19, 5000, 5000},     {20, 7500, 7500},
                 {39, 7500, 7500}, {40, 5000, 1000},  {65, 7500, 1000},     {80, 5000, 1000},
                 {99, 5000, 1000}, {100, 7500, 1000}, {4000060, 7500, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(link_steps_at(&trace, cases[i].at_ms * MS, false, NULL), cases[i].looped_us);
        assert_int_equal(link_steps_at(&trace, cases[i].at_ms * MS, true, NULL), cases[i].held_us);
    }
    link_steps_free(&trace);
    trace = parse_delays("0,3\n");
    assert_int_equal(link_steps_at(&trace, 12345 * MS, false, NULL), 3000);
    link_steps_free(&trace);
}

TEST(a_long_delay_trace_is_read_to_its_end) {
    char *text = malloc(3000 * 24), *at = text;
    for (unsigned i = 0; i < 3000; i++)
        at += sprintf(at, "%u,%u\n", i, i % 1000);
    link_steps trace = parse_delays(text);
    assert_int_equal(trace.count, 3000);
    for (uint64_t i = 0; i < 3000; i++)
        assert_int_equal(link_steps_at(&trace, i * MS, true, NULL), i % 1000 * MS);
    link_steps_free(&trace);
    assert_null(trace.steps);
    free(text);
}

TEST(what_is_no_probability_is_no_link) {
    const link_config bad[] = {{.reorder = 1.1},     {.duplicate = -0.1},   {.loss = {.good = 1.1}},
                               {.loss = {.p = 1.1}}, {.loss = {.r = -0.1}}, {.loss = {.bad = 1.1}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char error[256] = "";
        assert_null(link_new(&bad[i], error, sizeof error));
        assert_non_null(strstr(error, "is not a probability"));
    }
}

TEST(a_wrong_delay_trace_is_named_with_its_line) {
    static const struct {
        const char *text, *where;
    } cases[] = {{"", "d:1: the delay trace is empty"},
                 {"0,1\n5\n", "d:2: the line is not"},
                 {"0,1\n\n", "d:2: the line is not"},
                 {"0,1\n0,2\n", "d:2: the line does not come after"},
                 {"0,-1\n", "d:1: the line is not"},
                 {"0,3600001\n", "d:1: the line is not"},
                 {"0,1,2\n", "d:1: the line is not"},
                 {"ms,delay\n", "d:1: the line is not"},
                 {"0,1\r\n5,2\r\n", "d:1: the line ends in CR LF"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        link_steps trace;
        char error[256] = "";
        assert_false(link_text_parse(&link_delay_trace_form, &trace, "d", cases[i].text, strlen(cases[i].text), error,
                                     sizeof error));
        assert_memory_equal(error, cases[i].where, strlen(cases[i].where));
    }
}

/* 50 ms up to time 10, then 5 ms. 1 comes at 8 and leaves the delay at 58; 2 comes at 12 and would leave at 17, but
 * stays behind 1: 58 too. 3 comes at 60 and leaves at 65. The start offset shifts this function too. */
TEST(packets_stay_in_order_where_the_delay_falls) {
    link_steps trace = parse_delays("0,50\n10,5\n");
    link_bench *b = bench_new("1\n", (link_config){.delay_trace = &trace, .hold_delay = true});
    bench_send(b, 0, 1, 1504, 8 * MS);
    bench_send(b, 0, 2, 1504, 12 * MS);
    bench_send(b, 0, 3, 1504, 60 * MS);
    BENCH_EXPECT(b, 80 * MS, {1, 59 * MS}, {2, 60 * MS}, {3, 66 * MS});
    bench_free(b);
    b = bench_new("1\n", (link_config){.delay_trace = &trace, .hold_delay = true, .start_offset_ms = 5});
    bench_send(b, 0, 1, 1504, 8 * MS);
    BENCH_EXPECT(b, 80 * MS, {1, 14 * MS});
    bench_free(b);
    link_steps_free(&trace);
}

TEST(jitter_stays_within_its_bounds_and_keeps_the_order) {
    link_bench *b = bench_new("1gbps", (link_config){.delay_us = 3000, .jitter_us = 2000, .seed = 2});
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t n = 1; n <= 5000; n++) {
        bench_send(b, 0, n, 104, n * 10 * MS);
        link_advance(b->link, n * 10 * MS + 9 * MS);
        link_packet *p = link_pull(b->link);
        uint64_t delay = p->arrival_us - n * 10 * MS;
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
        link_departed(b->link, p, p->due_us);
    }
    assert_in_range(least, 1000, 1010);
    assert_in_range(most, 4990, 5000);
    bench_free(b);
    b = bench_new(FAST, (link_config){.delay_us = 3000, .jitter_us = 5000, .seed = 2});
    bench_send_many(b, 1, 500, 104, 0);
    link_advance(b->link, 1000 * MS);
    for (uint32_t n = 1; n <= 500; n++) {
        link_packet *p = link_pull(b->link);
        assert_int_equal(numbered_number(p), n);
        link_departed(b->link, p, 1000 * MS);
    }
    bench_free(b);
}

/* A tenth of the packets, one per ms, takes 10.5 ms longer: 10 others overtake it. */
TEST(reordered_packets_are_overtaken_and_the_others_are_not) {
    link_bench *b = bench_new(FAST, (link_config){.reorder = 0.1, .reorder_us = 10500, .seed = 4});
    uint32_t newest = 0, behind = 0, sent = 10000;
    for (uint32_t n = 1; n <= sent; n++) {
        bench_send(b, 0, n, 104, n * MS);
        link_advance(b->link, n * MS);
        for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
            uint64_t held = p->arrival_us - numbered_number(p) * MS;
            assert_true(held == 0 || held == 10500);
            assert_int_equal(held != 0, numbered_number(p) < newest);
            behind += held != 0;
            newest = numbered_number(p) > newest ? numbered_number(p) : newest;
            link_departed(b->link, p, n * MS);
        }
    }
    assert_in_range(link_get_stats(b->link).reordered, 880, 1120); /* four standard deviations of 30 */
    assert_true(behind + 11 >= link_get_stats(b->link).reordered);
    bench_free(b);
}

TEST(a_duplicate_follows_its_original_and_is_counted) {
    link_bench *b = bench_new("1\n", (link_config){.duplicate = 1.0, .queue = "droptail:packets=3"});
    bench_send_many(b, 1, 2, 1504, 500);
    BENCH_EXPECT(b, 10 * MS, {1, 1 * MS}, {1, 2 * MS}, {2, 3 * MS});
    link_stats s = link_get_stats(b->link);
    assert_int_equal(s.duplicates, 2);
    assert_int_equal(s.queue_drops, 1);
    bench_check_balance(b);
    bench_free(b);
}

/* ---- opportunities ---- */

/* 12 Mbps: 12032 bits every 1002.667 us, rounded up. */
TEST(a_rate_is_evenly_spaced_and_exact_in_the_long_run) {
    link_bench *b = bench_new("12mbps", (link_config){0});
    bench_send_many(b, 1, 4, 1504, 0);
    BENCH_EXPECT(b, 100 * MS, {1, 1003}, {2, 2006}, {3, 3008}, {4, 4011});
    uint64_t hour = 3600 * S;
    link_advance(b->link, hour);
    assert_int_equal(link_get_stats(b->link).opportunities, UINT64_C(12000000) * 3600 / 12032);
    bench_send(b, 0, 5, 1504, hour); /* 3590425.53 have passed: the next is number 3590426 */
    assert_int_equal(link_next_deadline(b->link), (UINT64_C(3590426) * 12032 * 1000000 + 11999999) / 12000000);
    bench_free(b);
}

TEST(rates_are_read_with_their_units) {
    static const struct {
        const char *text;
        uint64_t bps;
    } cases[] = {{"12mbps", 12000000},
                 {"1.5gbps", 1500000000},
                 {"0.5kbps", 500},
                 {"64000bps", 64000},
                 {"12.345mbps", 12345000},
                 {"12", 0},
                 {"mbps", 0},
                 {"12mbit", 0},
                 {"12.mbps", 0},
                 {".5mbps", 0},
                 {"0mbps", 0},
                 {"1001gbps", 0},
                 {"-1mbps", 0},
                 {"12mbps.trace", 0},
                 {"./12mbps", 0},
                 {"99999999999999999999999gbps", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bps = 0;
        assert_int_equal(link_trace_parse_rate(cases[i].text, &bps), cases[i].bps != 0);
        assert_true(cases[i].bps == 0 || bps == cases[i].bps);
    }
}

TEST(counting_a_rate_agrees_with_its_times) {
    static const uint64_t rates[] = {1, 300000, 12000000, 12032000000, 12345677, LINK_TRACE_MAX_RATE_BPS};
    link_rng rng = {1};
    for (size_t i = 0; i < 6 * 1000; i++) {
        link_trace trace = link_trace_constant(rates[i % 6]);
        uint64_t k = link_rng_next(&rng) % 1000000000;
        uint64_t t = link_trace_opportunity_us(&trace, k);
        assert_true(link_trace_count_near(&trace, 0, t) > k);
        assert_true(t == 0 || link_trace_count_near(&trace, 0, t - 1) <= k);
    }
}

TEST(a_trace_that_is_replayed_once_ends) {
    link_bench *b = bench_new("3\n10\n", (link_config){.once = true, .queue = "droptail:packets=2"});
    bench_send_many(b, 1, 2, 1504, 0);
    BENCH_EXPECT(b, 50 * MS, {1, 3 * MS}, {2, 10 * MS});
    bench_send_many(b, 3, 5, 1504, 60 * MS); /* wait for ever, within the queue's limit */
    BENCH_EXPECT(b, 1000 * S);
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    assert_int_equal(link_get_stats(b->link).opportunities, 2);
    assert_int_equal(link_get_stats(b->link).queue_drops, 3);
    bench_free(b);
    b = bench_new("3\n10\n", (link_config){.once = true, .start_offset_ms = 5});
    bench_send_many(b, 1, 2, 1504, 0);
    BENCH_EXPECT(b, 50 * MS, {1, 5 * MS});
    bench_free(b);
}

/* ---- changes at run time ---- */

TEST(a_link_that_is_down_loses_arrivals_and_keeps_its_queue) {
    link_bench *b = bench_new("10\n", (link_config){.delay_us = 5 * MS});
    bench_send_many(b, 1, 2, 1504, 0);
    bench_send_many(b, 3, 1, 1504, 8 * MS);
    CHANGE(b->link, 12 * MS, .has_state = true,
           .is_up = false); /* 1 has left at 10, 2 is in the queue, 3 in the delay */
    assert_false(link_is_up(b->link));
    assert_int_equal(link_next_deadline(b->link), 10 * MS);
    BENCH_EXPECT(b, 45 * MS, {1, 10 * MS});
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    assert_int_equal(link_get_stats(b->link).off_losses, 1);
    CHANGE(b->link, 45 * MS, .has_state = true, .is_up = true);
    assert_int_equal(link_next_deadline(b->link), 50 * MS);
    bench_send_many(b, 4, 1, 1504, 46 * MS);
    BENCH_EXPECT(b, 100 * MS, {2, 50 * MS}, {4, 60 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 10);
    bench_check_balance(b);
    bench_free(b);
}

TEST(a_new_delay_holds_for_packets_that_come_after) {
    link_steps trace = parse_delays("0,50\n");
    link_bench *b = bench_new("1\n", (link_config){.delay_trace = &trace});
    bench_send(b, 0, 1, 1504, 1 * MS);
    CHANGE(b->link, 2 * MS, .has_delay = true, .delay_us = 20 * MS);
    bench_send(b, 0, 2, 1504, 3 * MS); /* would arrive at 23, but 1 is before it until 51 */
    bench_send(b, 0, 3, 1504, 40 * MS);
    BENCH_EXPECT(b, 100 * MS, {1, 52 * MS}, {2, 53 * MS}, {3, 61 * MS});
    bench_free(b);
    link_steps_free(&trace);
}

TEST(loss_changes) {
    link_bench *b = bench_new(FAST, (link_config){0});
    const link_loss all = {.good = 1.0}, wrong = {.good = 1.5}, nan_loss = {.p = NAN};
    bench_send_many(b, 1, 10, 104, 0);
    link_advance(b->link, 1 * MS);
    CHANGE(b->link, 1 * MS, .has_loss = true, .loss = all);
    assert_false(link_loss_is_valid(&wrong));
    assert_false(link_loss_is_valid(&nan_loss));
    bench_send_many(b, 11, 10, 104, 2 * MS);
    link_advance(b->link, 3 * MS);
    assert_int_equal(link_get_stats(b->link).random_losses, 10);
    bench_free(b);
}

/* Every 10 ms up to 25; from then on 12.032 Mbps, an opportunity per ms: 26, 27 ... */
TEST(a_new_rate_begins_at_once) {
    link_bench *b = bench_new("10\n", (link_config){0});
    bench_send_many(b, 1, 5, 1504, 0);
    CHANGE(b->link, 25 * MS, .rate_bps = 12032000);
    BENCH_EXPECT(b, 28 * MS, {1, 10 * MS}, {2, 20 * MS}, {3, 26 * MS}, {4, 27 * MS}, {5, 28 * MS});
    CHANGE(b->link, 35 * MS, .trace = &b->trace); /* 45, 55 ... */
    bench_send_many(b, 6, 2, 1504, 36 * MS);
    BENCH_EXPECT(b, 60 * MS, {6, 45 * MS}, {7, 55 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 2 + 10 + 2); /* 10, 20; 26 to 35; 45, 55 */
    bench_free(b);
}

/* The radio is idle at first: 260 ms. Then packets come 99, 100 and 130 ms after the one before, with a cycle of 40 ms:
 * the last two wait for its multiples, 120 and 160 ms. After the tail again 260 ms. Order is kept. */
TEST(the_first_packet_after_a_pause_waits_for_the_radio) {
    const link_radio lte = {260 * MS, 11576 * MS, 100 * MS, 40 * MS};
    link_bench *b = bench_new("1gbps", (link_config){.radio = lte, .delay_us = 10 * MS});
    const uint64_t sent[] = {0, 200, 299, 399, 529, 530, 12105, 12106, 23682}; /* ms; the last after the whole tail */
    const uint64_t there[] = {260, 260, 299, 419, 559, 559, 12105 + 25, 12130, 23682 + 260};
    for (uint32_t n = 0; n < sizeof sent / sizeof sent[0]; n++)
        bench_send(b, 0, n, 104, sent[n] * MS);
    link_advance(b->link, 30000 * MS);
    for (uint32_t n = 0; n < sizeof there / sizeof there[0]; n++) {
        link_packet *p = link_pull(b->link);
        assert_non_null(p);
        assert_int_equal(numbered_number(p), n);
        assert_int_equal(p->due_us / MS, there[n] + 10);
        link_departed(b->link, p, p->due_us);
    }
    bench_free(b);
}

TEST(what_is_reordered_waits_for_the_radio_too) {
    const link_radio radio = {.promotion_us = 260 * MS, .tail_us = 11576 * MS};
    link_bench *b = bench_new(
        "1gbps", (link_config){.radio = radio, .delay_us = 10 * MS, .reorder = 0.5, .reorder_us = 20 * MS, .seed = 1});
    for (uint32_t n = 0; n < 20; n++)
        bench_send(b, 0, n, 104, n * MS);
    link_advance(b->link, S);
    assert_in_range(link_get_stats(b->link).reordered, 5, 15);
    for (uint32_t n = 0; n < 20; n++) {
        link_packet *p = link_pull(b->link);
        assert_non_null(p);
        assert_true(p->due_us >= 270 * MS);
        link_departed(b->link, p, p->due_us);
    }
    bench_free(b);
}

TEST(without_a_radio_a_pause_costs_nothing) {
    const link_radio none = {0}, uplink = {.promotion_us = 260 * MS, .tail_us = 11576 * MS};
    assert_int_equal(link_radio_wait(&none, LINK_RADIO_NO_PACKET), 0);
    assert_int_equal(link_radio_wait(&none, 3600 * 1000 * MS), 0);
    assert_int_equal(link_radio_wait(&uplink, 11576 * MS - 1), 0);
    assert_int_equal(link_radio_wait(&uplink, LINK_RADIO_NO_PACKET), 260 * MS);
}

/* A preset has two times: no wait for pauses below the tail, the promotion for longer ones. */
TEST(a_preset_of_a_radio_is_its_promotion_and_its_tail) {
    static const struct {
        const char *name;
        uint64_t promotion_us, tail_us;
    } rows[] = {
#define ROW(name, promotion_ms, tail_ms) {name, (promotion_ms)*MS, (tail_ms)*MS},
        LINK_RADIO_PRESETS(ROW)
#undef ROW
    };
    char error[160], text[80];
    link_rng rng = {1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        link_radio named, spelled;
        assert_true(link_radio_parse(&named, rows[i].name, error, sizeof error));
        snprintf(text, sizeof text, "promotion=%" PRIu64 ":tail=%" PRIu64, rows[i].promotion_us / MS,
                 rows[i].tail_us / MS);
        assert_true(link_radio_parse(&spelled, text, error, sizeof error));
        assert_memory_equal(&named, &spelled, sizeof named);
        assert_int_equal(link_radio_wait(&named, rows[i].tail_us - 1), 0);
        assert_int_equal(link_radio_wait(&named, rows[i].tail_us), rows[i].promotion_us);
        assert_int_equal(link_radio_wait(&named, LINK_RADIO_NO_PACKET), rows[i].promotion_us);
        for (unsigned n = 0; n < 1000; n++) {
            uint64_t pause = link_rng_next(&rng) % (4 * rows[i].tail_us);
            assert_int_equal(link_radio_wait(&named, pause), pause < rows[i].tail_us ? 0 : rows[i].promotion_us);
        }
        snprintf(text, sizeof text, "%s:tail=1", rows[i].name);
        assert_false(link_radio_parse(&named, text, error, sizeof error));
    }
}

/* Occasions are at phase + k 1280 ms. A packet of the phone wakes it up at once. A packet of the network waits for an
 * occasion, and so do later ones; a packet that the phone sends meanwhile wakes it up earlier. */
TEST(a_phone_that_sleeps_is_paged_and_wakes_up_by_itself_when_it_sends) {
    const link_radio radio = {.promotion_us = 200 * MS, .tail_us = 5000 * MS};
    link_rrc rrc = link_rrc_make(&radio, 1280 * MS, 7);
    const uint64_t occasion = rrc.phase_us + 20 * 1280 * MS;
    assert_true(rrc.phase_us < 1280 * MS);
    assert_int_equal(link_rrc_wait(&rrc, false, 0), 200 * MS);
    assert_int_equal(link_rrc_wait(&rrc, true, 50 * MS), 150 * MS); /* the other direction, while it wakes up */
    assert_int_equal(link_rrc_wait(&rrc, true, 5199 * MS), 0);      /* the tail began when it woke up */
    assert_int_equal(link_rrc_wait(&rrc, false, 10198 * MS), 0);    /* and again at each packet */
    assert_int_equal(link_rrc_wait(&rrc, false, 15198 * MS), 200 * MS);
    assert_int_equal(link_rrc_wait(&rrc, true, occasion - 1), 200 * MS + 1);
    assert_int_equal(link_rrc_wait(&rrc, true, occasion + 100 * MS), 100 * MS);
    rrc.last_us = 0;
    assert_int_equal(link_rrc_wait(&rrc, true, occasion), 200 * MS); /* at an occasion */
    rrc.last_us = 0;
    assert_int_equal(link_rrc_wait(&rrc, true, occasion + 1), 1480 * MS - 1);
    assert_int_equal(link_rrc_wait(&rrc, true, occasion + 2), 1480 * MS - 2);
    assert_int_equal(link_rrc_wait(&rrc, false, occasion + 3), 200 * MS); /* it does not wait for the page */
    assert_int_equal(link_rrc_wait(&rrc, true, occasion + 4), 200 * MS - 1);
    const link_radio awake = {.inactive_us = 100 * MS, .cycle_us = 40 * MS};
    assert_int_equal(link_rrc_make(&awake, 1280 * MS, 7).paging_us, 0); /* it never sleeps */
    assert_int_equal(link_rrc_make(&radio, 0, 7).paging_us, 0);
}

/* Through two links that share it: the answer to a packet that the phone has just sent is not paged. */
TEST(the_directions_of_a_path_share_its_radio) {
    const link_radio radio = {.promotion_us = 200 * MS, .tail_us = 5000 * MS};
    link_rrc rrc = link_rrc_make(&radio, 1280 * MS, 7);
    link_bench *up = bench_new("1gbps", (link_config){.radio = radio, .rrc = &rrc});
    link_bench *down = bench_new("1gbps", (link_config){.radio = radio, .rrc = &rrc, .is_downlink = true});
    const uint64_t paged = 20000 * MS,
                   next = rrc.phase_us + (paged - rrc.phase_us + 1280 * MS - 1) / (1280 * MS) * 1280 * MS;
    bench_send(up, 0, 0, 104, 1000 * MS);
    bench_send(down, 0, 1, 104, 1250 * MS);
    link_advance(down->link, 2000 * MS);
    link_packet *answer = link_pull(down->link);
    assert_int_equal(answer->due_us / MS, 1250);
    link_departed(down->link, answer, 2000 * MS);
    bench_send(down, 0, 2, 104, paged);
    link_advance(down->link, 30000 * MS);
    link_packet *push = link_pull(down->link);
    assert_int_equal(push->due_us / MS, next / MS + 200);
    link_departed(down->link, push, 30000 * MS);
    link_advance(up->link, 30000 * MS);
    link_packet *request = link_pull(up->link);
    assert_int_equal(request->due_us / MS, 1200);
    link_departed(up->link, request, 30000 * MS);
    bench_free(up);
    bench_free(down);
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* RRC-Probe: a server sends to a sleeping phone. Its quantiles for each preset, in ms; connected: the least RTTs, p5.
 * The preset was made from the median, not from the other quantiles. */
TEST(paged_presets_have_the_round_trips_that_were_measured) {
    static const struct {
        const char *name;
        uint64_t connected, p5, p50, p95;
    } rows[] = {
        {"lte-tmobile-2021", 80, 395, 935, 1539},    {"lte-verizon-2021", 76, 392, 955, 1540},
        {"nsa-tmobile-2021", 89, 477, 1017, 1599},   {"nsa-verizon-2021", 69, 380, 970, 1541},
        {"mmwave-verizon-2021", 61, 400, 920, 1530}, {"sa-tmobile-2021", 78, 510, 1086, 1645},
    };
    enum { PROBES = 4000 };
    static uint64_t rtts[PROBES];
    char error[160];
    link_rng rng = {3};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        link_radio radio;
        assert_true(link_radio_parse(&radio, rows[i].name, error, sizeof error));
        link_rrc rrc = link_rrc_make(&radio, 1280 * MS, i);
        uint64_t now = 0;
        for (size_t n = 0; n < PROBES; n++) {
            now += radio.tail_us + 3000 * MS + link_rng_next(&rng) % (5000 * MS);
            rtts[n] = rows[i].connected + link_rrc_wait(&rrc, true, now) / MS;
        }
        qsort(rtts, PROBES, sizeof rtts[0], by_value);
        assert_in_range(rtts[PROBES / 20], rows[i].p5 - 60, rows[i].p5 + 60);
        assert_in_range(rtts[PROBES / 2], rows[i].p50 - 20, rows[i].p50 + 20);
        assert_in_range(rtts[PROBES * 19 / 20], rows[i].p95 - 60, rows[i].p95 + 60);
    }
}

/* Finds which packets of a path, one every 10 ms, take 150 ms longer. */
static void find_spikes(uint32_t path, uint32_t way, bool *late, uint32_t count) {
    link_bench *b = bench_new(
        "1gbps",
        (link_config){.delay_us = 20 * MS, .reorder = 0.04, .reorder_us = 150 * MS, .seed = link_seed(1, path, way)});
    for (uint32_t n = 0; n < count; n++) {
        bench_send(b, 0, n, 104, n * 10 * MS);
        link_advance(b->link, n * 10 * MS);
        for (link_packet *p; (p = link_pull(b->link));) {
            late[numbered_number(p)] = p->due_us > numbered_number(p) * 10 * MS + 100 * MS;
            link_departed(b->link, p, p->due_us);
        }
    }
    bench_free(b);
}

/* As for two operators (PAM 2025, docs/reference/links.md): both have spikes at once only as often as by chance. */
TEST(delay_spikes_of_two_paths_are_independent) {
    enum { COUNT = 100000 };
    static bool late[2][COUNT];
    for (uint32_t way = 0; way < 2; way++) {
        double share[2] = {0, 0}, joint = 0;
        for (uint32_t path = 0; path < 2; path++)
            find_spikes(path, way, late[path], COUNT);
        for (size_t n = 0; n < COUNT; n++) {
            share[0] += late[0][n] / (double)COUNT;
            share[1] += late[1][n] / (double)COUNT;
            joint += (late[0][n] && late[1][n]) / (double)COUNT;
        }
        const double product = share[0] * share[1];
        assert_true(fabs(share[0] - 0.04) < 0.003 && fabs(share[1] - 0.04) < 0.003);
        assert_true(fabs(joint - product) < 4 * sqrt(product / COUNT)); /* 0.0016 +- 0.0005 */
    }
}

TEST_MAIN(NULL, NULL)
