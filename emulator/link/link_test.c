#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/link.h"
#include "emulator/link/rng.h"

#define MS UINT64_C(1000)

/* One link with its trace, its log and its pool. Packets carry their number in their first byte. */
typedef struct {
    link_trace trace;
    link_pool *pool;
    emulated_link *link;
    link_log log;
    char text[65536];
    size_t text_length;
} test_bench;

static void sink(void *context, const char *text, size_t length) {
    test_bench *bench = context;
    assert_true(bench->text_length + length < sizeof(bench->text));
    memcpy(bench->text + bench->text_length, text, length);
    bench->text_length += length;
    bench->text[bench->text_length] = '\0';
}

static test_bench *make(const char *trace, link_config config) {
    test_bench *bench = calloc(1, sizeof(*bench));
    char error[512] = "";
    assert_true(link_trace_parse(&bench->trace, "t", trace, strlen(trace), error, sizeof error));
    bench->pool = link_pool_new(0);
    link_log_init(&bench->log, sink, bench);
    config.trace = &bench->trace;
    config.pool = bench->pool;
    config.log = config.log ? &bench->log : NULL; /* any address: with a log */
    config.queue = config.queue ? config.queue : "infinite";
    bench->link = link_new(&config, error, sizeof error);
    assert_non_null(bench->link);
    return bench;
}

static void done(test_bench *bench) {
    link_free(bench->link);
    assert_int_equal(link_pool_in_use(bench->pool), 0); /* nothing leaks, whatever is still inside */
    link_pool_free(bench->pool);
    link_trace_free(&bench->trace);
    free(bench);
}

/* bytes is what counts in the link: 4 more than the IP packet. */
static void in(test_bench *bench, uint8_t number, uint32_t bytes, uint64_t now) {
    link_packet *packet = link_pool_get(bench->pool);
    packet->length = bytes - 4;
    packet->data[0] = number;
    link_enqueue(bench->link, packet, now);
}

static void expect_out(test_bench *bench, uint8_t number, uint64_t due) {
    link_packet *packet = link_pull(bench->link);
    assert_non_null(packet);
    assert_int_equal(packet->data[0], number);
    assert_int_equal(packet->due_us, due);
    link_departed(bench->link, packet, packet->due_us);
}

static void expect_nothing(test_bench *bench) {
    assert_null(link_pull(bench->link));
}

TEST(a_packet_leaves_at_the_next_opportunity) {
    test_bench *b = make("5\n10\n", (link_config){0});
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    in(b, 1, 1504, 1 * MS);
    assert_int_equal(link_next_deadline(b->link), 5 * MS);
    link_advance(b->link, 5 * MS - 1);
    expect_nothing(b);
    link_advance(b->link, 5 * MS);
    expect_out(b, 1, 5 * MS);
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER);
    done(b);
}

TEST(a_packet_does_not_use_an_opportunity_of_its_own_millisecond) {
    static const uint64_t arrivals[] = {5 * MS, 5 * MS + 1, 5 * MS + 999};
    for (size_t i = 0; i < 3; i++) {
        test_bench *b = make("5\n8\n", (link_config){0});
        in(b, 1, 100, arrivals[i]);
        assert_int_equal(link_next_deadline(b->link), 8 * MS);
        link_advance(b->link, 20 * MS);
        expect_out(b, 1, 8 * MS);
        done(b);
    }
}

TEST(the_rest_of_an_opportunity_serves_the_next_packets) {
    test_bench *b = make("5\n10\n", (link_config){0});
    in(b, 1, 504, 0);
    in(b, 2, 500, 0);
    in(b, 3, 500, 0);
    in(b, 4, 500, 0);
    link_advance(b->link, 5 * MS);
    expect_out(b, 1, 5 * MS);
    expect_out(b, 2, 5 * MS);
    expect_out(b, 3, 5 * MS);
    expect_nothing(b);
    assert_int_equal(link_get_stats(b->link).opportunities_used, 1);
    link_advance(b->link, 10 * MS);
    expect_out(b, 4, 10 * MS);
    done(b);
}

TEST(a_packet_served_in_part_goes_on_at_the_next_opportunity) {
    test_bench *b = make("5\n10\n15\n", (link_config){0});
    in(b, 1, 1000, 0);
    in(b, 2, 1000, 0); /* 504 bytes at 5, the other 496 at 10 */
    in(b, 3, 1008, 0); /* 1008 bytes at 10: exactly the rest */
    in(b, 4, 1504, 0);
    link_advance(b->link, 5 * MS);
    expect_out(b, 1, 5 * MS);
    expect_nothing(b);
    link_advance(b->link, 10 * MS);
    expect_out(b, 2, 10 * MS);
    expect_out(b, 3, 10 * MS);
    expect_nothing(b);
    link_advance(b->link, 15 * MS);
    expect_out(b, 4, 15 * MS);
    done(b);
}

TEST(an_empty_queue_loses_the_rest_of_the_opportunity) {
    test_bench *b = make("5\n10\n", (link_config){0});
    in(b, 1, 100, 0);
    link_advance(b->link, 5 * MS);
    expect_out(b, 1, 5 * MS);
    in(b, 2, 100, 5 * MS + 10); /* 1404 bytes of the opportunity at 5 were left */
    link_advance(b->link, 9 * MS);
    expect_nothing(b);
    link_advance(b->link, 10 * MS);
    expect_out(b, 2, 10 * MS);
    done(b);
}

TEST(opportunities_pass_used_or_not) {
    test_bench *b = make("1\n2\n3\n4\n100\n", (link_config){0});
    in(b, 1, 1504, 50 * MS); /* the four before give no credit */
    in(b, 2, 1504, 50 * MS);
    link_advance(b->link, 100 * MS);
    expect_out(b, 1, 100 * MS);
    expect_nothing(b);
    assert_int_equal(link_get_stats(b->link).opportunities, 5);
    assert_int_equal(link_get_stats(b->link).opportunities_used, 1);
    assert_int_equal(link_next_deadline(b->link), 101 * MS); /* and the trace begins again */
    done(b);
}

TEST(several_opportunities_share_a_millisecond) {
    test_bench *b = make("5\n5\n10\n", (link_config){0});
    for (uint8_t i = 1; i <= 3; i++)
        in(b, i, 1504, 0);
    link_advance(b->link, 5 * MS);
    expect_out(b, 1, 5 * MS);
    expect_out(b, 2, 5 * MS);
    expect_nothing(b);
    link_advance(b->link, 10 * MS);
    expect_out(b, 3, 10 * MS);
    done(b);
}

TEST(the_trace_loops_after_its_last_timestamp) {
    test_bench *b = make("3\n10\n", (link_config){0});
    for (uint8_t i = 1; i <= 5; i++)
        in(b, i, 1504, 0);
    link_advance(b->link, 1000 * MS);
    expect_out(b, 1, 3 * MS);
    expect_out(b, 2, 10 * MS);
    expect_out(b, 3, 13 * MS);
    expect_out(b, 4, 20 * MS);
    expect_out(b, 5, 23 * MS);
    done(b);
}

TEST(the_start_offset_moves_the_trace) {
    test_bench *b = make("3\n10\n", (link_config){.start_offset_ms = 8});
    test_bench *later = make("3\n10\n", (link_config){.start_offset_ms = 30});
    for (uint8_t i = 1; i <= 2; i++) {
        in(b, i, 1504, 0);
        in(later, i, 1504, 0);
    }
    link_advance(b->link, 6 * MS);
    expect_out(b, 1, 2 * MS);
    expect_out(b, 2, 5 * MS);
    assert_int_equal(link_get_stats(b->link).opportunities, 2); /* those before t0 are not counted */
    link_advance(later->link, 20 * MS);
    expect_out(later, 1, 3 * MS); /* the one at trace time 30 falls on t0 itself and serves nobody */
    expect_out(later, 2, 10 * MS);
    assert_int_equal(link_get_stats(later->link).opportunities, 5); /* at 0, 3, 10, 13, 20 */
    done(b);
    done(later);
}

TEST(the_delay_comes_before_the_queue) {
    test_bench *b = make("1\n", (link_config){.delay_us = 2500});
    in(b, 1, 1504, 1 * MS); /* at the queue at 3.5 ms */
    assert_int_equal(link_next_deadline(b->link), 4 * MS);
    in(b, 2, 1504, 1500); /* at the queue at 4.0 ms: not the opportunity at 4 */
    in(b, 3, 1504, 1500);
    link_advance(b->link, 10 * MS);
    expect_out(b, 1, 4 * MS);
    expect_out(b, 2, 5 * MS);
    expect_out(b, 3, 6 * MS);
    done(b);
}

TEST(droptail_limits_what_waits_and_not_what_is_in_the_delay) {
    test_bench *b = make("100\n", (link_config){.delay_us = 10 * MS, .queue = "droptail:packets=2"});
    for (uint8_t i = 1; i <= 5; i++)
        in(b, i, 1504, 0);
    assert_int_equal(link_get_stats(b->link).queue_drops, 0);
    link_advance(b->link, 10 * MS);
    assert_int_equal(link_get_stats(b->link).queue_drops, 3);
    link_advance(b->link, 300 * MS);
    expect_out(b, 1, 100 * MS);
    expect_out(b, 2, 200 * MS);
    expect_nothing(b);
    done(b);
}

TEST(a_packet_in_service_does_not_count_in_the_queue) {
    test_bench *b = make("5\n100\n", (link_config){.queue = "droptail:bytes=3008"});
    in(b, 1, 1000, 0);
    in(b, 2, 1504, 0);
    link_advance(b->link, 6 * MS); /* 2 is served in part */
    expect_out(b, 1, 5 * MS);
    in(b, 3, 1504, 6 * MS);
    in(b, 4, 1504, 6 * MS);
    in(b, 5, 5, 6 * MS);
    link_advance(b->link, 7 * MS);
    assert_int_equal(link_get_stats(b->link).queue_drops, 1);
    done(b);
}

TEST(the_queue_keeps_its_limit_while_nobody_asks_for_deliveries) {
    test_bench *b = make("1000000\n", (link_config){.queue = "droptail:packets=10"});
    for (uint64_t t = 0; t < 5000; t++)
        in(b, 1, 1504, t * MS);
    assert_true(link_pool_in_use(b->pool) <= 11);
    done(b);
}

TEST(oversize_packets_are_dropped_and_counted) {
    test_bench *b = make("1\n", (link_config){0});
    in(b, 1, 1505, 0);
    in(b, 2, 1504, 0);
    link_advance(b->link, 5 * MS);
    expect_out(b, 2, 1 * MS);
    expect_nothing(b);
    link_stats stats = link_get_stats(b->link);
    assert_int_equal(stats.oversize_drops, 1);
    assert_int_equal(stats.arrived_packets, 2);
    assert_int_equal(stats.arrived_bytes, 3009);
    assert_int_equal(stats.departed_bytes, 1504);
    done(b);
}

/* Which of 2000 packets survive a loss of 10 %. */
static void survivors(uint64_t seed, uint8_t survived[2000], uint64_t *losses) {
    test_bench *b = make("1\n1\n1\n1\n", (link_config){.loss = {.good = 0.1}, .seed = seed});
    memset(survived, 0, 2000);
    for (uint32_t i = 0; i < 2000; i++) {
        link_packet *packet = link_pool_get(b->pool);
        packet->length = 1500;
        memcpy(packet->data, &i, sizeof i);
        link_enqueue(b->link, packet, 0);
    }
    link_advance(b->link, 1000 * MS);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        uint32_t i;
        memcpy(&i, p->data, sizeof i);
        survived[i] = 1;
        link_departed(b->link, p, p->due_us);
    }
    *losses = link_get_stats(b->link).random_losses;
    done(b);
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
    test_bench *b = make("5\n10\n", (link_config){.log = &any, .queue = "droptail:packets=2"});
    link_log_header(&b->log, "Uplink", "/t", "log\nfile", "mpshell -- sh", link_queue_description(b->link), 1234);
    in(b, 1, 1000, 2 * MS);
    in(b, 2, 1000, 3500);
    in(b, 3, 104, 3600);
    link_advance(b->link, 11 * MS);
    link_packet *first = link_pull(b->link);
    link_departed(b->link, first, 7200); /* due at 5: the log has the time at which it really left */
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
    done(b);
}

TEST(a_log_of_many_lines_reaches_the_sink_whole) {
    link_log any;
    test_bench *b = make("1\n", (link_config){.log = &any});
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
    done(b);
}

TEST(an_idle_link_skips_a_year_by_arithmetic) {
    test_bench *b = make("1\n", (link_config){0});
    uint64_t year = UINT64_C(365) * 86400 * 1000 * MS;
    for (uint64_t i = 1; i <= 1000; i++) /* 3e13 opportunities: a loop over them would not end */
        link_advance(b->link, i * year);
    assert_int_equal(link_get_stats(b->link).opportunities, 1000 * year / MS);
    in(b, 1, 1504, 1000 * year);
    assert_int_equal(link_next_deadline(b->link), 1000 * year + MS);
    done(b);
}

TEST(a_late_driver_gets_the_scheduled_times) {
    test_bench *b = make("1\n", (link_config){0});
    in(b, 1, 1504, 0);
    in(b, 2, 1504, 0);
    link_advance(b->link, 9 * MS);
    expect_out(b, 1, 1 * MS);
    expect_out(b, 2, 2 * MS);
    done(b);
}

TEST(missed_counts_only_while_the_link_is_empty) {
    test_bench *b = make("1\n", (link_config){0});
    link_count_missed(b->link, 2 * MS, 7 * MS);
    assert_int_equal(link_get_stats(b->link).missed, 5);
    in(b, 1, 1504, 7 * MS);
    link_count_missed(b->link, 7 * MS, 9 * MS);
    assert_int_equal(link_get_stats(b->link).missed, 5);
    done(b);
}

TEST(every_packet_is_accounted_for) {
    test_bench *b =
        make("2\n3\n3\n7\n",
             (link_config){.delay_us = 1700, .loss = {.good = 0.2}, .seed = 3, .queue = "droptail:packets=5"});
    link_rng rng = {42};
    uint64_t now = 0;
    for (int i = 0; i < 20000; i++) {
        now += link_rng_next(&rng) % 2000;
        in(b, 1, 24 + (uint32_t)(link_rng_next(&rng) % 1500), now);
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
        link_stats s = link_get_stats(b->link);
        assert_int_equal(s.arrived_packets, s.departed_packets + s.queue_drops + s.random_losses + s.oversize_drops +
                                                s.memory_drops + s.inside_packets);
        assert_true(s.opportunities_used <= s.opportunities);
    }
    link_stats s = link_get_stats(b->link);
    assert_true(s.queue_drops > 0 && s.random_losses > 0 && s.oversize_drops > 0 && s.departed_packets > 0);
    done(b);
}

TEST_MAIN(NULL, NULL)
