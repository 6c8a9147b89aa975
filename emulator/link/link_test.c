#include <stdio.h>

#include "emulator/link/testing/bench.h"
#include "emulator/link/rng.h"

TEST(a_packet_leaves_at_the_next_opportunity) {
    link_bench *b = bench_new("5\n10\n", (link_config){0});
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    bench_send(b, 0, 1, 1504, 1 * MS);
    assert_int_equal(link_next_deadline(b->link), 5 * MS);
    BENCH_EXPECT(b, 5 * MS - 1);
    BENCH_EXPECT(b, 5 * MS, {1, 5 * MS});
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    bench_free(b);
}

TEST(a_packet_does_not_use_an_opportunity_of_its_own_millisecond) {
    static const uint64_t arrivals[] = {5 * MS, 5 * MS + 1, 5 * MS + 999};
    for (size_t i = 0; i < 3; i++) {
        link_bench *b = bench_new("5\n8\n", (link_config){0});
        bench_send(b, 0, 1, 100, arrivals[i]);
        assert_int_equal(link_next_deadline(b->link), 8 * MS);
        BENCH_EXPECT(b, 20 * MS, {1, 8 * MS});
        bench_free(b);
    }
}

TEST(the_rest_of_an_opportunity_serves_the_next_packets) {
    link_bench *b = bench_new("5\n10\n", (link_config){0});
    bench_send(b, 0, 1, 504, 0);
    bench_send_many(b, 2, 3, 500, 0);
    BENCH_EXPECT(b, 5 * MS, {1, 5 * MS}, {2, 5 * MS}, {3, 5 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities_used, 1);
    BENCH_EXPECT(b, 10 * MS, {4, 10 * MS});
    bench_free(b);
}

TEST(a_packet_served_in_part_goes_on_at_the_next_opportunity) {
    link_bench *b = bench_new("5\n10\n15\n", (link_config){0});
    bench_send(b, 0, 1, 1000, 0);
    bench_send(b, 0, 2, 1000, 0); /* 504 bytes at 5, the other 496 at 10 */
    bench_send(b, 0, 3, 1008, 0); /* 1008 bytes at 10: exactly the rest */
    bench_send(b, 0, 4, 1504, 0);
    BENCH_EXPECT(b, 5 * MS, {1, 5 * MS});
    BENCH_EXPECT(b, 10 * MS, {2, 10 * MS}, {3, 10 * MS});
    BENCH_EXPECT(b, 15 * MS, {4, 15 * MS});
    bench_free(b);
}

TEST(an_empty_queue_loses_the_rest_of_the_opportunity) {
    link_bench *b = bench_new("5\n10\n", (link_config){0});
    bench_send(b, 0, 1, 100, 0);
    BENCH_EXPECT(b, 5 * MS, {1, 5 * MS});
    bench_send(b, 0, 2, 100, 5 * MS + 10); /* 1404 bytes of the opportunity at 5 were left */
    BENCH_EXPECT(b, 9 * MS);
    BENCH_EXPECT(b, 10 * MS, {2, 10 * MS});
    bench_free(b);
}

TEST(opportunities_pass_used_or_not) {
    link_bench *b = bench_new("1\n2\n3\n4\n100\n", (link_config){0});
    bench_send(b, 0, 1, 1504, 50 * MS); /* the four opportunities before give no credit */
    bench_send(b, 0, 2, 1504, 50 * MS);
    BENCH_EXPECT(b, 100 * MS, {1, 100 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 5);
    assert_int_equal(link_get_stats(b->link).opportunities_used, 1);
    assert_int_equal(link_next_deadline(b->link), 101 * MS); /* and the trace begins again */
    bench_free(b);
}

TEST(several_opportunities_share_a_millisecond) {
    link_bench *b = bench_new("5\n5\n10\n", (link_config){0});
    bench_send_many(b, 1, 3, 1504, 0);
    BENCH_EXPECT(b, 5 * MS, {1, 5 * MS}, {2, 5 * MS});
    BENCH_EXPECT(b, 10 * MS, {3, 10 * MS});
    bench_free(b);
}

TEST(the_trace_loops_after_its_last_timestamp) {
    link_bench *b = bench_new("3\n10\n", (link_config){0});
    bench_send_many(b, 1, 5, 1504, 0);
    BENCH_EXPECT(b, 1000 * MS, {1, 3 * MS}, {2, 10 * MS}, {3, 13 * MS}, {4, 20 * MS}, {5, 23 * MS});
    bench_free(b);
}

TEST(the_start_offset_moves_the_trace) {
    link_bench *b = bench_new("3\n10\n", (link_config){.start_offset_ms = 8});
    link_bench *later = bench_new("3\n10\n", (link_config){.start_offset_ms = 30});
    bench_send_many(b, 1, 2, 1504, 0);
    bench_send_many(later, 1, 2, 1504, 0);
    BENCH_EXPECT(b, 6 * MS, {1, 2 * MS}, {2, 5 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 2); /* opportunities before t0 are not counted */
    /* The opportunity at trace time 30 falls on t0 and serves no packet. */
    BENCH_EXPECT(later, 20 * MS, {1, 3 * MS}, {2, 10 * MS});
    assert_int_equal(link_get_stats(later->link).opportunities, 5); /* at 0, 3, 10, 13, 20 */
    bench_free(b);
    bench_free(later);
}

TEST(the_delay_comes_before_the_queue) {
    link_bench *b = bench_new("1\n", (link_config){.delay_us = 2500});
    bench_send(b, 0, 1, 1504, 1 * MS); /* at the queue at 3.5 ms */
    assert_int_equal(link_next_deadline(b->link), 4 * MS);
    bench_send(b, 0, 2, 1504, 1500); /* at the queue at 4.0 ms: not the opportunity at 4 */
    bench_send(b, 0, 3, 1504, 1500);
    BENCH_EXPECT(b, 10 * MS, {1, 4 * MS}, {2, 5 * MS}, {3, 6 * MS});
    bench_free(b);
}

TEST(droptail_limits_what_waits_and_not_what_is_in_the_delay) {
    link_bench *b = bench_new("100\n", (link_config){.delay_us = 10 * MS, .queue = "droptail:packets=2"});
    bench_send_many(b, 1, 5, 1504, 0);
    assert_int_equal(link_get_stats(b->link).queue_drops, 0);
    link_advance(b->link, 10 * MS);
    assert_int_equal(link_get_stats(b->link).queue_drops, 3);
    BENCH_EXPECT(b, 300 * MS, {1, 100 * MS}, {2, 200 * MS});
    bench_free(b);
}

TEST(a_packet_in_service_does_not_count_in_the_queue) {
    link_bench *b = bench_new("5\n100\n", (link_config){.queue = "droptail:bytes=3008"});
    bench_send(b, 0, 1, 1000, 0);
    bench_send(b, 0, 2, 1504, 0);
    BENCH_EXPECT(b, 6 * MS, {1, 5 * MS}); /* 2 is served in part */
    bench_send_many(b, 3, 2, 1504, 6 * MS);
    bench_send(b, 0, 5, 5, 6 * MS);
    link_advance(b->link, 7 * MS);
    assert_int_equal(link_get_stats(b->link).queue_drops, 1);
    bench_free(b);
}

TEST(the_queue_keeps_its_limit_while_nobody_asks_for_deliveries) {
    link_bench *b = bench_new("1000000\n", (link_config){.queue = "droptail:packets=10"});
    for (uint64_t t = 0; t < 5000; t++)
        bench_send(b, 0, 1, 1504, t * MS);
    assert_true(link_pool_in_use(b->pool) <= 11);
    bench_free(b);
}

TEST(oversize_packets_are_dropped_and_counted) {
    link_bench *b = bench_new("1\n", (link_config){0});
    bench_send(b, 0, 1, 1505, 0);
    bench_send(b, 0, 2, 1504, 0);
    BENCH_EXPECT(b, 5 * MS, {2, 1 * MS});
    link_stats stats = link_get_stats(b->link);
    assert_int_equal(stats.oversize_drops, 1);
    assert_int_equal(stats.arrived_packets, 2);
    assert_int_equal(stats.arrived_bytes, 3009);
    assert_int_equal(stats.departed_bytes, 1504);
    bench_free(b);
}

/* Finds which of 2000 packets survive a loss of 10 %. */
static void survivors(uint64_t seed, uint8_t survived[2000], uint64_t *losses) {
    link_bench *b = bench_new("1\n1\n1\n1\n", (link_config){.loss = {.good = 0.1}, .seed = seed});
    memset(survived, 0, 2000);
    bench_send_many(b, 0, 2000, 1504, 0);
    link_advance(b->link, 1000 * MS);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        survived[numbered_number(p)] = 1;
        link_departed(b->link, p, p->due_us);
    }
    *losses = link_get_stats(b->link).random_losses;
    bench_free(b);
}

TEST(random_loss_follows_its_seed) {
    static uint8_t first[2000], again[2000], other[2000];
    uint64_t losses, losses_again, losses_other;
    survivors(link_seed(7, 0, 0), first, &losses);
    survivors(link_seed(7, 0, 0), again, &losses_again);
    survivors(link_seed(7, 0, 1), other, &losses_other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    assert_in_range(losses, 140, 260); /* 200 expected, four standard deviations */
    assert_in_range(losses_other, 140, 260);
    uint64_t survived = 0;
    for (size_t i = 0; i < sizeof first; i++)
        survived += first[i];
    assert_int_equal(survived + losses, 2000);
}

TEST(every_direction_has_its_own_seed) {
    uint64_t seeds[64];
    for (uint32_t i = 0; i < 64; i++) {
        seeds[i] = link_seed(i / 32, (i % 32) / 2, i % 2);
        for (uint32_t j = 0; j < i; j++)
            assert_true(seeds[i] != seeds[j]);
    }
}

TEST(loss_must_be_a_probability) {
    link_config config = {.queue = "infinite", .loss = {.good = 1.5}};
    char error[256] = "";
    assert_null(link_new(&config, error, sizeof error));
    assert_non_null(strstr(error, "the loss is not a probability"));
    config.loss.good = 0.0;
    config.queue = "no-such";
    assert_null(link_new(&config, error, sizeof error));
    assert_non_null(strstr(error, "no-such"));
}

TEST(the_log_is_mm_links) {
    link_log any;
    link_bench *b = bench_new("5\n10\n", (link_config){.log = &any, .queue = "droptail:packets=2"});
    link_log_header(&b->log, "Uplink", "/t", "log\nfile", "mpshell -- sh", link_queue_description(b->link), 1234);
    bench_send(b, 0, 1, 1000, 2 * MS);
    bench_send(b, 0, 2, 1000, 3500);
    bench_send(b, 0, 3, 104, 3600);
    link_advance(b->link, 11 * MS);
    link_packet *first = link_pull(b->link);
    link_departed(b->link, first, 7200); /* due at 5 ms; the log has the actual time */
    link_packet *second = link_pull(b->link);
    link_departed(b->link, second, 10100);
    link_log_flush(&b->log);
    assert_string_equal(b->text, "# mahimahi mm-link (Uplink) [/t] > log file\n"
                                 "# command line: mpshell -- sh\n"
                                 "# queue: droptail [packets=2]\n"
                                 "# init timestamp: 1234\n"
                                 "# base timestamp: 0\n"
                                 "2 + 1000\n"
                                 "3 + 1000\n"
                                 "3 + 104\n"
                                 "3 d 1 104\n"
                                 "5 # 1504\n"
                                 "10 # 1504\n"
                                 "7 - 1000 5\n"
                                 "10 - 1000 7\n");
    assert_int_equal(link_get_lateness(b->link)->max_us, 2200);
    assert_int_equal(link_get_lateness(b->link)->over_1ms, 1);
    bench_free(b);
}

TEST(the_log_says_what_an_opportunity_delivers) {
    link_log any;
    link_bench *b = bench_new("5\n10\n", (link_config){.log = &any, .opportunity_bytes = 1400});
    link_advance(b->link, 5 * MS);
    bench_send(b, 0, 1, 1400, 6 * MS);
    link_advance(b->link, 10 * MS);
    link_log_flush(&b->log);
    assert_string_equal(b->text, "5 # 1400\n6 + 1400\n10 # 1400\n");
    bench_free(b);
}

TEST(a_log_of_many_lines_reaches_the_sink_whole) {
    link_log any;
    link_bench *b = bench_new("1\n", (link_config){.log = &any});
    link_advance(b->link, 4000 * MS);
    link_log_flush(&b->log);
    const char *at = b->text;
    for (int t = 1; t <= 4000; t++) {
        char line[32];
        int n = snprintf(line, sizeof line, "%d # 1504\n", t);
        assert_memory_equal(at, line, (size_t)n);
        at += n;
    }
    assert_int_equal(*at, '\0');
    bench_free(b);
}

TEST(an_idle_link_skips_a_year_by_arithmetic) {
    link_bench *b = bench_new("1\n", (link_config){0});
    uint64_t year = UINT64_C(365) * 86400 * 1000 * MS;
    for (uint64_t i = 1; i <= 1000; i++) /* 3e13 opportunities: a loop over them would not end */
        link_advance(b->link, i * year);
    assert_int_equal(link_get_stats(b->link).opportunities, 1000 * year / MS);
    bench_send(b, 0, 1, 1504, 1000 * year);
    assert_int_equal(link_next_deadline(b->link), 1000 * year + MS);
    bench_free(b);
}

TEST(a_late_driver_gets_the_scheduled_times) {
    link_bench *b = bench_new("1\n", (link_config){0});
    bench_send_many(b, 1, 2, 1504, 0);
    BENCH_EXPECT(b, 9 * MS, {1, 1 * MS}, {2, 2 * MS});
    bench_free(b);
}

TEST(missed_counts_only_while_the_link_is_empty) {
    link_bench *b = bench_new("1\n", (link_config){0});
    link_count_missed(b->link, 2 * MS, 7 * MS);
    assert_int_equal(link_get_stats(b->link).missed, 5);
    bench_send(b, 0, 1, 1504, 7 * MS);
    link_count_missed(b->link, 7 * MS, 9 * MS);
    assert_int_equal(link_get_stats(b->link).missed, 5);
    bench_free(b);
}

TEST(every_packet_is_accounted_for) {
    link_bench *b =
        bench_new("2\n3\n3\n7\n",
                  (link_config){.delay_us = 1700, .loss = {.good = 0.2}, .seed = 3, .queue = "droptail:packets=5"});
    link_rng rng = {42};
    uint64_t now = 0;
    for (int i = 0; i < 20000; i++) {
        now += link_rng_next(&rng) % 2000;
        bench_send(b, 0, 1, 24 + (uint32_t)(link_rng_next(&rng) % 1500), now);
        if (i % 7 == 0)
            link_refuse(b->link, 1000);
        if (link_next_deadline(b->link) <= now) {
            link_advance(b->link, now);
            link_packet *p = link_pull(b->link);
            if (p) {
                assert_true(p->due_us <= now && p->due_us > p->arrival_us);
                link_departed(b->link, p, now);
            }
        }
        bench_check_balance(b);
    }
    link_stats s = link_get_stats(b->link);
    assert_true(s.queue_drops > 0 && s.random_losses > 0 && s.oversize_drops > 0 && s.departed_packets > 0);
    bench_free(b);
}

TEST_MAIN(NULL, NULL)
