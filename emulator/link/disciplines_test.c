/* Every discipline against Mahimahi's documented accounting: small traces and arrivals, with departures computed by
 * hand. Packets have 1504 bytes, which fill an opportunity, unless stated otherwise. */
#include "emulator/link/testing/bench.h"

#define TENS "10\n20\n30\n40\n50\n60\n70\n80\n90\n100\n"

static link_log any; /* asks for a log */

static link_bench *with_queue(const char *trace, const char *queue) {
    return bench_new(trace, (link_config){.queue = queue, .log = &any});
}

static void expect_log(link_bench *b, const char *text) {
    link_log_flush(&b->log);
    assert_string_equal(b->text, text);
}

/* Three packets arrive at 1 ms. The opportunities at 10, 20 and 30 take one each; those at 40 and 50 are unused. */
TEST(infinite) {
    link_bench *b = with_queue(TENS, "infinite");
    bench_send_many(b, 1, 3, 1504, 1 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 10 * MS}, {2, 20 * MS}, {3, 30 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 5);
    assert_int_equal(link_get_stats(b->link).opportunities_used, 3);
    bench_free(b);
}

/* 1 and 2 fill the queue, 3 is dropped. At 10, 1 leaves: there is room for 4 (12 ms), not for 5. */
TEST(droptail_by_packets) {
    link_bench *b = with_queue(TENS, "droptail:packets=2");
    bench_send_many(b, 1, 3, 1504, 1 * MS);
    bench_send_many(b, 4, 2, 1504, 12 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 10 * MS}, {2, 20 * MS}, {4, 30 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 2);
    expect_log(b, "1 + 1504\n1 + 1504\n1 + 1504\n1 d 1 1504\n10 # 1504\n12 + 1504\n12 + 1504\n12 d 1 1504\n"
                  "20 # 1504\n30 # 1504\n40 # 1504\n50 # 1504\n10 - 1504 9\n20 - 1504 19\n30 - 1504 18\n");
    bench_free(b);
}

/* 1000 + 1000 bytes are queued; 1008 more would make 3008 > 3000; 900 make 2900; 101 would make 3001.
 * At 10 ms: 1 (1000) whole, 504 of 2, which is out of the queue then: 900 are left in it. 2100 fit exactly in two
 * packets, 1 byte more does not. At 20: the other 496 of 2, the 900 of 4, 108 of 6 (1050). At 30: the other 942 of 6
 * and 562 of 7 (1050). At 40 the rest of 7. */
TEST(droptail_by_bytes) {
    link_bench *b = with_queue(TENS, "droptail:bytes=3000");
    bench_send_many(b, 1, 2, 1000, 0);
    bench_send(b, 0, 3, 1008, 0);
    bench_send(b, 0, 4, 900, 0);
    bench_send(b, 0, 5, 101, 0);
    bench_send_many(b, 6, 2, 1050, 11 * MS);
    bench_send(b, 0, 8, 40, 11 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 10 * MS}, {2, 20 * MS}, {4, 20 * MS}, {6, 30 * MS}, {7, 40 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 3); /* 3, 5 and 8 */
    bench_free(b);
}

/* 3 replaces 1, 4 replaces 2: the newest two are left. At 10, 3 leaves. 5 fits, 6 replaces 4. */
TEST(drophead_by_packets) {
    link_bench *b = with_queue(TENS, "drophead:packets=2");
    bench_send_many(b, 1, 4, 1504, 1 * MS);
    bench_send_many(b, 5, 2, 1504, 12 * MS);
    BENCH_EXPECT(b, 50 * MS, {3, 10 * MS}, {5, 20 * MS}, {6, 30 * MS});
    expect_log(b, "1 + 1504\n1 + 1504\n1 + 1504\n1 d 1 1504\n1 + 1504\n1 d 1 1504\n10 # 1504\n"
                  "12 + 1504\n12 + 1504\n12 d 1 1504\n20 # 1504\n30 # 1504\n40 # 1504\n50 # 1504\n"
                  "10 - 1504 9\n20 - 1504 8\n30 - 1504 18\n");
    bench_free(b);
}

/* 500 + 600 + 700 = 1800. 4 (1504) makes 3304 > 2000: 1 (2804), 2 (2204) and 3 (1504) go, in one line of the log. 5
 * (496) makes 2000, which is allowed. */
TEST(drophead_by_bytes) {
    link_bench *b = with_queue(TENS, "drophead:bytes=2000");
    bench_send(b, 0, 1, 500, 1 * MS);
    bench_send(b, 0, 2, 600, 1 * MS);
    bench_send(b, 0, 3, 700, 1 * MS);
    bench_send(b, 0, 4, 1504, 2 * MS);
    bench_send(b, 0, 5, 496, 3 * MS);
    BENCH_EXPECT(b, 20 * MS, {4, 10 * MS}, {5, 20 * MS});
    expect_log(b, "1 + 500\n1 + 600\n1 + 700\n2 + 1504\n2 d 3 1800\n3 + 496\n10 # 1504\n20 # 1504\n"
                  "10 - 1504 8\n20 - 496 17\n");
    bench_free(b);
}

TEST(a_packet_larger_than_drophead_s_limit_empties_the_queue) {
    link_bench *b = with_queue(TENS, "drophead:bytes=1000");
    bench_send(b, 0, 1, 500, 1 * MS);
    bench_send(b, 0, 2, 1504, 1 * MS);
    bench_send(b, 0, 3, 1000, 2 * MS);
    BENCH_EXPECT(b, 20 * MS, {3, 10 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 2);
    bench_free(b);
}

/* RFC 8289's pseudocode with target 5 and interval 20 ms; 14 packets at 0, one taken every 10 ms.
 *   10: 1 has waited 10 > 5: if that lasts until 30, drop. 1 and (20) 2 go.
 *   30: 3 is dropped, 4 goes. count 1, next drop at 30 + 20/sqrt(1) = 50. 40: 5 goes.
 *   50: 6 is dropped, 7 goes. count 2, next 50 + 20/sqrt(2) = 64.1. 60: 8 goes.
 *   70: 9 is dropped, 10 goes. count 3, next 64.1 + 20/sqrt(3) = 75.7.
 *   80: 11 is dropped, 12 goes. count 4, next 85.7.
 *   90: 13 leaves 1504 bytes behind, which is no standing queue: dropping ends. 13 and (100) 14 go.
 * 10 more come at 101.
 *  110: 15 has waited 9 > 5, until 130. 15 and (120) 16 go.
 *  130: 17 is dropped, 18 goes. The last dropping state came to 4, began at 1, and was not long ago: count 4 - 1 = 3,
 *       next drop at 130 + 20/sqrt(3) = 141.5. 140: 19 goes.
 *  150: 20 is dropped, 21 goes. count 4, next 151.5.
 *  160: 22 is dropped, 23 leaves 1504 bytes behind and goes; 170: 24. */
TEST(codel) {
    link_bench *b = with_queue(TENS, "codel:target=5:interval=20");
    bench_send_many(b, 1, 14, 1504, 0);
    BENCH_EXPECT(b, 100 * MS, {1, 10 * MS}, {2, 20 * MS}, {4, 30 * MS}, {5, 40 * MS}, {7, 50 * MS}, {8, 60 * MS},
                 {10, 70 * MS}, {12, 80 * MS}, {13, 90 * MS}, {14, 100 * MS});
    bench_send_many(b, 15, 10, 1504, 101 * MS);
    BENCH_EXPECT(b, 200 * MS, {15, 110 * MS}, {16, 120 * MS}, {18, 130 * MS}, {19, 140 * MS}, {21, 150 * MS},
                 {23, 160 * MS}, {24, 170 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 7);
    link_log_flush(&b->log);
    assert_non_null(strstr(b->text, "\n30 # 1504\n30 d 1 1504\n40 # 1504\n")); /* the drop at dequeue is in the log */
    bench_free(b);
}

/* Twice the queue that CoDel ignores, but with less delay than target: no packet is ever dropped. */
TEST(codel_leaves_a_short_delay_alone) {
    link_bench *b = with_queue("1\n2\n", "codel:target=5:interval=20");
    for (uint32_t t = 0; t < 2000; t++) {
        bench_send_many(b, t * 2 + 1, t == 0 ? 4 : 1, 1504, t * MS);
        link_advance(b->link, t * MS);
    }
    assert_int_equal(link_get_stats(b->link).queue_drops, 0);
    bench_free(b);
}

/* RFC 8033: nothing is served, and 10 packets wait since 0. The burst allowance ends at 150 ms; before that every
 * packet is taken. The delay grows by 15 ms per update, so the probability goes to 1: below 0.1 it grows by at least
 * (0.125 * (15 k - 15) + 1.25 * 15) / 2048 ms^-1 in update k, from 0.1 on by 0.02 (the cap) or 45 updates. 200 updates,
 * 3 s, are more than enough. Then every packet is dropped. */
TEST(pie) {
    link_bench *b = with_queue("1000000\n", "pie");
    bench_send_many(b, 1, 10, 1504, 0);
    bench_send_many(b, 11, 10, 1504, 149 * MS);
    link_advance(b->link, 150 * MS);
    assert_int_equal(link_get_stats(b->link).queue_drops, 0);
    link_advance(b->link, 20 * S);
    bench_send_many(b, 31, 50, 1504, 20 * S);
    link_advance(b->link, 20 * S + 1);
    assert_int_equal(link_get_stats(b->link).queue_drops, 50);
    assert_int_equal(link_get_stats(b->link).queued_packets, 20);
    bench_free(b);
}

TEST(pie_keeps_its_hard_limit_during_a_burst) {
    link_bench *b = with_queue(TENS, "pie:packets=3");
    bench_send_many(b, 1, 5, 1504, 1 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 10 * MS}, {2, 20 * MS}, {3, 30 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 2);
    bench_free(b);
}

TEST(pie_after_a_year_without_packets_is_as_new) {
    link_bench *b = bench_new("1000000\n", (link_config){.queue = "pie"});
    bench_send_many(b, 1, 5, 1504, 0);
    bench_send_many(b, 6, 1, 1504, 30 * S);
    for (uint64_t year = 1; year <= 100; year++) { /* 2e11 updates: a loop over them would not end */
        uint64_t now = year * 365 * 86400 * S;
        bench_send_many(b, 10, 100, 1504, now);
        link_advance(b->link, now + 1);
        bench_check_balance(b);
    }
    bench_free(b);
}

/* RFC 8290, quantum 1504. Flow A sends 1 to 6, flow B 11 and 12, at 0. Both are new: A sends 1 (its quantum is spent)
 * and becomes old; B sends 11 and becomes old; then in turns 2, 12, 3; B is empty and removed; 4. At 45, B sends 13: it
 * is new again and comes before A's 5. */
TEST(fq_codel) {
    link_bench *b = with_queue(TENS, "fq_codel:quantum=1504:target=1000");
    for (uint32_t n = 1; n <= 6; n++)
        bench_send(b, 'A', n, 1504, 0);
    bench_send(b, 'B', 11, 1504, 0);
    bench_send(b, 'B', 12, 1504, 0);
    BENCH_EXPECT(b, 60 * MS, {1, 10 * MS}, {11, 20 * MS}, {2, 30 * MS}, {12, 40 * MS}, {3, 50 * MS}, {4, 60 * MS});
    bench_send(b, 'B', 13, 1504, 65 * MS);
    BENCH_EXPECT(b, 100 * MS, {13, 70 * MS}, {5, 80 * MS}, {6, 90 * MS});
    bench_free(b);
}

/* Deficit round robin by bytes: three packets of 501 bytes count as one of 1504. A's 1 (1504) spends its quantum; B's
 * 11, 12, 13 (1503) leave 1 byte, so 14 follows and B owes 500: its next turn has 1004, for 15 and 16. Opportunity 20
 * has 11 to 13 and 1 byte of 14; 30 the other 500 of 14 and 1004 of 2; 40 the other 500 of 2 and 1002 of 15 and 16. */
TEST(fq_codel_shares_by_bytes) {
    link_bench *b = with_queue("10\n", "fq_codel:quantum=1504:target=1000");
    bench_send(b, 'A', 1, 1504, 0);
    bench_send(b, 'A', 2, 1504, 0);
    for (uint32_t n = 11; n <= 16; n++)
        bench_send(b, 'B', n, 501, 0);
    BENCH_EXPECT(b, 50 * MS, {1, 10 * MS}, {11, 20 * MS}, {12, 20 * MS}, {13, 20 * MS}, {14, 30 * MS}, {2, 40 * MS},
                 {15, 40 * MS}, {16, 40 * MS});
    bench_free(b);
}

/* Limit 4. A has 3 packets, B 2: at the fifth packet A is the fattest flow and loses packets from its head, down to
 * half of its bytes: 1 and 2. */
TEST(fq_codel_over_its_limit_drops_from_the_head_of_the_fattest_flow) {
    link_bench *b = with_queue(TENS, "fq_codel:packets=4:target=1000");
    bench_send(b, 'A', 1, 1504, 0);
    bench_send(b, 'A', 2, 1504, 0);
    bench_send(b, 'A', 3, 1504, 0);
    bench_send(b, 'B', 11, 1504, 0);
    bench_send(b, 'B', 12, 1504, 0);
    BENCH_EXPECT(b, 50 * MS, {3, 10 * MS}, {11, 20 * MS}, {12, 30 * MS});
    assert_int_equal(link_get_stats(b->link).queue_drops, 2);
    bench_free(b);
}

TEST_MAIN(NULL, NULL)
