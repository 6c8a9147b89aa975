#include "recovery/cross_traffic.h"
#include "tests/unit.h"

#define MIN_RTT  40000
#define CAPACITY 2500000 /* bytes/s */
#define SECOND   1000000

/* From `from` to `to`, acknowledges a packet every 20 ms, each with an RTT of rtt_us and own_bytes delivered
 * meanwhile. */
static void acked(xl_cross_traffic *s, uint64_t from, uint64_t to, uint64_t rtt_us, uint64_t own_bytes, uint64_t rate) {
    for (uint64_t now = from; now < to; now += 20000)
        xl_cross_traffic_acked(s, rtt_us, MIN_RTT, own_bytes, rate, now);
}

TEST(a_delay_beyond_the_own_bytes_is_due_to_others) {
    xl_cross_traffic s = {0};
    assert_int_equal(0, xl_cross_traffic_delay(&s, 0));
    acked(&s, 10 * SECOND, 12 * SECOND, 240000, 14000, CAPACITY);
    assert_int_equal(200000, xl_cross_traffic_delay(&s, 12 * SECOND));
    acked(&s, 12 * SECOND, 14 * SECOND, 240000, 300000, CAPACITY); /* half of the queue is the path's own */
    assert_int_equal(120000, xl_cross_traffic_delay(&s, 14 * SECOND));
    acked(&s, 14 * SECOND, 16 * SECOND, 240000, 600000, CAPACITY); /* all of it */
    assert_int_equal(0, xl_cross_traffic_delay(&s, 16 * SECOND));
}

/* One packet that found no queue is enough. */
TEST(the_least_delay_counts) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 12 * SECOND, 240000, 14000, CAPACITY);
    xl_cross_traffic_acked(&s, MIN_RTT, MIN_RTT, 14000, CAPACITY, 12 * SECOND);
    assert_int_equal(0, xl_cross_traffic_delay(&s, 12 * SECOND + 1000));
    acked(&s, 12 * SECOND + 20000, 14 * SECOND, 240000, 14000, CAPACITY);
    assert_int_equal(200000, xl_cross_traffic_delay(&s, 14 * SECOND));
}

/* The delay is known only while acknowledgements come. */
TEST(a_silent_path_says_nothing) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 11 * SECOND, 240000, 14000, CAPACITY); /* four buckets of six */
    assert_int_equal(0, xl_cross_traffic_delay(&s, 11 * SECOND));
    acked(&s, 11 * SECOND, 12 * SECOND, 240000, 14000, CAPACITY);
    assert_int_equal(200000, xl_cross_traffic_delay(&s, 12 * SECOND));
    assert_int_equal(0, xl_cross_traffic_delay(&s, 12 * SECOND + 600000));
    acked(&s, 20 * SECOND, 20 * SECOND + 100000, 240000, 14000, CAPACITY); /* nothing from before is left */
    assert_int_equal(0, xl_cross_traffic_delay(&s, 20 * SECOND + 100000));
}

/* All of the queue is the path's own after a fade to a tenth of the capacity, wherever in a bucket it begins. */
TEST(a_sudden_fade_is_not_due_to_others) {
    for (uint64_t fade = 12 * SECOND; fade < 12 * SECOND + 250000; fade += 10000) {
        xl_cross_traffic s = {0};
        acked(&s, fade - 2 * SECOND, fade, 80000, 200000, CAPACITY);
        for (uint64_t now = fade; now < fade + 4 * SECOND; now += 20000) {
            uint64_t rate = now < fade + 200000 ? CAPACITY : CAPACITY / 10;
            xl_cross_traffic_acked(&s, 800000, MIN_RTT, 200000, rate, now);
            assert_int_equal(0, xl_cross_traffic_delay(&s, now));
        }
    }
}

/* Others' packets are between those of a train, which shows less than the capacity. */
TEST(the_greatest_capacity_of_a_second_counts) {
    xl_cross_traffic s = {0};
    for (uint64_t now = 10 * SECOND; now < 14 * SECOND; now += 20000)
        xl_cross_traffic_acked(&s, 240000, MIN_RTT, 300000, now % 500000 == 0 ? CAPACITY : CAPACITY / 3, now);
    assert_int_equal(120000, xl_cross_traffic_delay(&s, 14 * SECOND));
}

/* A path of 64 kbit/s has no train that shows its capacity: its queue counts as its own. */
TEST(nothing_is_known_without_a_capacity) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 12 * SECOND, 240000, 14000, 0);
    assert_int_equal(0, xl_cross_traffic_delay(&s, 12 * SECOND));
    acked(&s, 12 * SECOND, 14 * SECOND, 240000, 14000, CAPACITY);
    assert_int_equal(200000, xl_cross_traffic_delay(&s, 14 * SECOND));
    acked(&s, 14 * SECOND, 16 * SECOND, 240000, 14000, 0);
    assert_int_equal(0, xl_cross_traffic_delay(&s, 16 * SECOND));
}

/* One packet without a queue amid the others of its bucket counts until that bucket is the seventh. */
TEST(the_least_delay_of_six_buckets_counts) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 12 * SECOND + 100000, 240000, 14000, CAPACITY);
    xl_cross_traffic_acked(&s, MIN_RTT, MIN_RTT, 14000, CAPACITY, 12 * SECOND + 110000);
    for (uint64_t now = 12 * SECOND + 120000; now < 14 * SECOND; now += 20000) {
        xl_cross_traffic_acked(&s, 240000, MIN_RTT, 14000, CAPACITY, now);
        assert_int_equal(now < 13 * SECOND + 500000 ? 0 : 200000, xl_cross_traffic_delay(&s, now));
    }
}

TEST(the_greatest_capacity_of_four_buckets_counts) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 12 * SECOND, 240000, 300000, CAPACITY);
    for (uint64_t now = 12 * SECOND; now < 14 * SECOND; now += 20000) {
        xl_cross_traffic_acked(&s, 240000, MIN_RTT, 300000, now < 12 * SECOND + 20000 ? CAPACITY : CAPACITY / 3, now);
        assert_int_equal(now < 13 * SECOND ? 120000 : 0, xl_cross_traffic_delay(&s, now));
    }
}

TEST(numbers_without_sense_do_not_overflow) {
    xl_cross_traffic s = {0};
    acked(&s, 10 * SECOND, 12 * SECOND, 240000, 700000, CAPACITY); /* faster than the capacity allows */
    assert_int_equal(0, xl_cross_traffic_delay(&s, 12 * SECOND - 1));
    acked(&s, 12 * SECOND, 14 * SECOND, UINT64_MAX, 14000, UINT64_MAX);
    assert_int_equal(UINT32_MAX - 1, xl_cross_traffic_delay(&s, 14 * SECOND - 1));
    s = (xl_cross_traffic){0};
    acked(&s, 0, 2 * SECOND, 240000, 14000, UINT64_C(1) << 32);
    assert_int_equal(200000, xl_cross_traffic_delay(&s, 2 * SECOND - 1));
}

TEST_MAIN(NULL, NULL)
