
#include "emulator/link/testing/bench.h"
#include "emulator/link/light.h"
#include "emulator/link/rng.h"

/* The first row has five offsets. The delay rises from 40 to 80 ms within a second, and falls again. */
#define ROWS  "0 40 0 0 3 3 9\n1000 80 0 5\n2000 40 0\n"
#define HEAVY "10\n20\n30\n40\n50\n" /* 1.2 Mbps */
#define FULL  1504u

static link_light_trace rows;
static link_size_latency sizes;

static int open_rows(void **state) {
    (void)state;
    char error[256];
    static const char latency[] = "100 -6\n200 -3.5\n300 0\n";
    assert_true(link_text_parse(&link_light_trace_form, &rows, "l", ROWS, sizeof ROWS - 1, error, sizeof error));
    assert_true(
        link_text_parse(&link_size_latency_form, &sizes, "z", latency, sizeof latency - 1, error, sizeof error));
    return 0;
}

static int close_rows(void **state) {
    (void)state;
    link_light_trace_free(&rows);
    link_size_latency_free(&sizes);
    return 0;
}

static link_bench *light_bench(uint64_t gap_us, const link_size_latency *size) {
    return bench_new(HEAVY, (link_config){.light = {.trace = &rows, .gap_us = gap_us, .size = size}});
}

TEST(a_lone_packet_sees_the_delay_of_its_row) {
    link_bench *b = light_bench(0, NULL);
    bench_send(b, 0, 1, FULL, 0);
    assert_int_equal(link_next_deadline(b->link), 40 * MS); /* not at an opportunity after that */
    BENCH_EXPECT(b, 90 * MS, {1, 40 * MS});
    bench_send(b, 0, 2, FULL, 515 * MS); /* 40 + 40 * 0.515 = 60.6 */
    BENCH_EXPECT(b, 600 * MS, {2, 575 * MS});
    bench_send(b, 0, 3, FULL, 1515 * MS); /* 80 - 40 * 0.515 = 59.4 */
    BENCH_EXPECT(b, 1600 * MS, {3, 1574 * MS});
    bench_send(b, 0, 4, FULL, 2000 * MS); /* the first row again */
    BENCH_EXPECT(b, 2100 * MS, {4, 2040 * MS});
    bench_free(b);
}

TEST(a_train_sees_the_offsets_of_the_row_and_then_the_heavy_trace) {
    link_bench *b = light_bench(0, NULL);
    bench_send_many(b, 1, 7, FULL, 0);
    BENCH_EXPECT(b, 49 * MS, {1, 40 * MS}, {2, 40 * MS}, {3, 43 * MS}, {4, 43 * MS}, {5, 49 * MS});
    /* The sixth would leave the delay at max(40, 9), before the fifth: it leaves with that one, into the queue. */
    BENCH_EXPECT(b, 80 * MS, {6, 50 * MS}, {7, 60 * MS});
    bench_check_balance(b);
    bench_free(b);
}

/* A sender writes the packets of one burst some us apart. Offsets, which are whole ms, do not pass in between. */
TEST(packets_that_come_us_apart_are_of_one_burst) {
    link_bench *b = light_bench(0, NULL);
    for (uint64_t k = 0; k < 5; k++)
        bench_send(b, 0, (uint32_t)k + 1, FULL, 3 * k);
    BENCH_EXPECT(b, 49 * MS, {1, 40 * MS}, {2, 40 * MS}, {3, 43 * MS}, {4, 43 * MS}, {5, 49 * MS});
    bench_free(b);
}

TEST(small_packets_share_an_opportunity_and_late_ones_skip_those_that_passed) {
    link_bench *b = light_bench(20 * MS, NULL);
    bench_send_many(b, 1, 2, 752, 0);   /* both at the first offset */
    bench_send(b, 0, 3, 752, 1 * MS);   /* the offsets 0 have passed */
    bench_send(b, 0, 4, FULL, 2 * MS);  /* not at the same offset as the third one */
    bench_send(b, 0, 5, FULL, 10 * MS); /* all have passed: max(40, 9) after it, to the queue */
    BENCH_EXPECT(b, 90 * MS, {1, 40 * MS}, {2, 40 * MS}, {3, 43 * MS}, {4, 43 * MS}, {5, 60 * MS});
    bench_free(b);
}

TEST(a_burst_begins_when_nothing_has_left_the_delay_for_the_gap) {
    link_bench *b = light_bench(20 * MS, NULL);
    bench_send(b, 0, 1, FULL, 0);
    bench_send(b, 0, 2, FULL, 20 * MS); /* belongs to the old burst: to the queue */
    bench_send(b, 0, 3, FULL, 41 * MS); /* begins a new burst, and bypasses the queue, which is empty by then */
    BENCH_EXPECT(b, 200 * MS, {1, 40 * MS}, {2, 70 * MS}, {3, 82 * MS});
    bench_free(b);
}

TEST(the_latency_of_a_size_counts_if_order_allows) {
    link_bench *b = light_bench(0, &sizes);
    bench_send(b, 0, 1, FULL, 0);        /* 0 as with 300 bytes */
    bench_send(b, 0, 2, 60, 1000 * MS);  /* 80 - 6 */
    bench_send(b, 0, 3, 150, 1500 * MS); /* 60 - 4.75 */
    bench_send(b, 0, 4, 260, 1510 * MS); /* 59 - 1.4 */
    BENCH_EXPECT(b, 1900 * MS, {1, 40 * MS}, {2, 1074 * MS}, {3, 1555 * MS}, {4, 1568 * MS});
    bench_free(b);
}

/* A sender that never pauses for the gap gets the rate of the heavy trace, except for one row. */
TEST(a_saturating_sender_sees_the_heavy_trace) {
    link_bench *b = light_bench(50 * MS, NULL);
    uint32_t number = 1, delivered = 0;
    for (uint64_t now = 0; now < 20 * S; now += 5 * MS) {
        bench_send(b, 0, number++, FULL, now);
        link_advance(b->link, now);
        for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
            delivered++;
            link_departed(b->link, p, now);
        }
    }
    assert_in_range(delivered, 1990, 2000); /* one every 10 ms */
    bench_check_balance(b);
    bench_free(b);
}

TEST(an_opportunity_has_as_many_bytes_as_are_set) {
    link_bench *b = bench_new(HEAVY, (link_config){.opportunity_bytes = 752});
    bench_send_many(b, 1, 2, FULL, 0);
    BENCH_EXPECT(b, 100 * MS, {1, 20 * MS}, {2, 40 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities_used, 4);
    bench_free(b);
}

TEST(a_plain_delay_from_outside_ends_the_light_trace) {
    link_bench *b = light_bench(0, NULL);
    CHANGE(b->link, 0, .has_delay = true, .delay_us = 7 * MS);
    bench_send(b, 0, 1, FULL, 0);
    BENCH_EXPECT(b, 30 * MS, {1, 10 * MS});
    bench_free(b);
}

TEST(a_packet_joins_the_queue_that_serves_another_at_that_time) {
    link_bench *b = light_bench(0, NULL);
    bench_send_many(b, 1, 7, FULL, 0);   /* the last two are served at 50 and 60 ms */
    bench_send(b, 0, 8, FULL, 20 * MS);  /* leaves the delay at 60 ms */
    bench_send(b, 0, 9, FULL, 121 * MS); /* the queue is empty */
    BENCH_EXPECT(b, 200 * MS, {1, 40 * MS}, {2, 40 * MS}, {3, 43 * MS}, {4, 43 * MS}, {5, 49 * MS}, {6, 50 * MS},
                 {7, 60 * MS}, {8, 70 * MS}, {9, 165 * MS});
    bench_free(b);
}

TEST(a_packet_that_would_overtake_leaves_with_the_one_before_it) {
    const link_light light = {&rows, NULL, S, FULL}, by_size = {&rows, &sizes, S, FULL};
    link_burst b = {0}, c = {0};
    bool direct;
    for (int i = 0; i < 5; i++)
        link_burst_next(&b, &light, 0, 0, FULL, &direct);
    assert_true(direct);
    assert_int_equal(link_burst_next(&b, &light, 0, 0, FULL, &direct), 49 * MS); /* not at max(40, 9) */
    assert_false(direct);
    link_burst_next(&c, &by_size, 0, 0, FULL, &direct);
    assert_int_equal(link_burst_next(&c, &by_size, 0, 0, 60, &direct), 40 * MS); /* not at 40 - 6 */
    assert_true(direct);
}

TEST(a_packet_after_the_row_waits_for_its_last_offset) {
    link_light_trace late;
    char error[256];
    static const char text[] = "0 5 0 30\n100 5 0\n";
    assert_true(link_text_parse(&link_light_trace_form, &late, "l", text, sizeof text - 1, error, sizeof error));
    const link_light light = {&late, NULL, S, FULL};
    link_burst b = {0};
    bool direct;
    link_burst_next(&b, &light, 0, 0, FULL, &direct);
    assert_int_equal(link_burst_next(&b, &light, 32 * MS, 32 * MS, FULL, &direct), 62 * MS);
    link_light_trace_free(&late);
}

/* For any arrivals, all packets leave, in order and after their arrival. */
TEST(packets_stay_in_order) {
    for (uint64_t seed = 1; seed <= 50; seed++) {
        link_rng rng = {seed};
        uint64_t gap = (uint64_t)(link_rng_uniform(&rng) * 50000);
        link_bench *b = light_bench(gap, seed % 2 ? &sizes : NULL);
        uint64_t now = 0, came[401] = {0};
        uint32_t next = 1;
        for (uint32_t n = 1; n <= 401; n++) {
            double pause = link_rng_uniform(&rng);
            now += n == 401 ? 60 * S : pause < 0.8 ? (uint64_t)(pause * 3000) : (uint64_t)(pause * 200000);
            if (n <= 400) {
                came[n] = now;
                bench_send(b, 0, n, 60 + (uint32_t)(link_rng_uniform(&rng) * 1444), now);
            }
            link_advance(b->link, now);
            for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
                assert_int_equal(numbered_number(p), next);
                assert_true(p->due_us >= came[next++] && p->due_us <= now);
                link_departed(b->link, p, now);
            }
        }
        assert_int_equal(next, 401);
        bench_free(b);
    }
}

static void refuse(const char *text, const char *why) {
    link_light_trace trace;
    char error[256] = "";
    assert_false(link_text_parse(&link_light_trace_form, &trace, "f", text, strlen(text), error, sizeof error));
    assert_string_equal(error, why);
}

TEST(tells_what_is_wrong_with_a_light_trace) {
#define NOT_A_ROW "the line is not \"ms delay_ms offset_ms ...\"; write whole numbers, separated by a space"
    refuse("", "f:1: the light trace is empty; it needs at least one line \"ms delay_ms offset_ms ...\"");
    refuse("0 1 0\n\n", "f:2: " NOT_A_ROW);
    refuse("0\n", "f:1: " NOT_A_ROW);
    refuse("0 -1\n", "f:1: " NOT_A_ROW);
    refuse("0 3600001\n", "f:1: " NOT_A_ROW);
    refuse("4294967296 1\n", "f:1: " NOT_A_ROW);
    refuse("0 1 0 x\n", "f:1: the line has an offset that is not a whole number of ms (0 to 3600000)");
    refuse("0 1 0  1\n", "f:1: the line has an offset that is not a whole number of ms (0 to 3600000)");
    refuse("5 1\n4 1\n", "f:2: the line comes before the one above it; times must not descend, sort the trace");
    refuse("0 1\n0 1\n", "f:2: the last time is 0; it is the period of the trace, at least 1");
}

TEST(tells_what_is_wrong_with_latencies_of_sizes) {
    static const char *const wrong[] = {"100", "200 1\n", "100 1\n300 1\n", "100 x\n", "100 1 2\n", "100 --1\n"};
    link_size_latency latency;
    char error[256];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(
            link_text_parse(&link_size_latency_form, &latency, "f", wrong[i], strlen(wrong[i]), error, sizeof error));
        assert_non_null(strstr(error, "the line is not \"bytes ms\"; write the sizes 100, 200, 300 and so on"));
    }
    assert_false(link_text_parse(&link_size_latency_form, &latency, "f", "", 0, error, sizeof error));
}

TEST_MAIN(open_rows, close_rows)
