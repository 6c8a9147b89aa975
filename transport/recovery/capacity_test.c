#include "tests/unit.h"
#include "recovery/capacity.h"

#define START 1000000
#define RTT   100000

/* Packets of 1000 bytes leave every sent_us from `at` on; their acknowledgements come every acked_us. Returns the time
 * of the last one. */
static uint64_t train(xl_capacity *s, unsigned packets, uint64_t at, uint64_t sent_us, uint64_t acked_us) {
    uint64_t now = at + RTT;
    for (unsigned i = 0; i < packets; i++)
        xl_capacity_acked(s, 1000, at + i * sent_us, at, now = at + RTT + i * acked_us);
    return now;
}

TEST(a_spread_train_shows_the_capacity) {
    xl_capacity s = {0};
    assert_int_equal(0, xl_capacity_time(&s, 50000)); /* no capacity yet */
    train(&s, 60, START, 100, 1000);
    assert_int_equal(1000000, s.bytes_per_s);
    assert_false(s.is_bound);
    assert_int_equal(50000, xl_capacity_time(&s, 50000));
}

TEST(idle_time_between_trains_does_not_count) {
    xl_capacity s = {0};
    train(&s, 60, START, 100, 1000);
    train(&s, 60, START + 5000000, 100, 1000);
    assert_int_equal(1000000, s.bytes_per_s);
}

TEST(a_train_that_is_not_spread_is_a_bound) {
    xl_capacity s = {0};
    train(&s, 40, START, 1000, 1000);
    assert_int_equal(1000000, s.bytes_per_s);
    assert_true(s.is_bound);
    assert_int_equal(12500, xl_capacity_time(&s, 50000)); /* a quarter */
    train(&s, 40, START + 1000000, 2000, 2000);           /* slower, because it was sent so: shows nothing new */
    assert_int_equal(1000000, s.bytes_per_s);
}

TEST(a_bound_is_measured_when_it_rises) {
    xl_capacity s = {0};
    train(&s, 40, START, 1000, 1000);
    uint64_t risen_at = s.measured_at;
    assert_true(s.is_bound && risen_at > START);
    train(&s, 40, START + 1000000, 2000, 2000); /* slower, because it was sent so */
    assert_int_equal(risen_at, s.measured_at);
}

TEST(a_change_is_known_within_a_train) {
    xl_capacity s = {0};
    train(&s, 60, START, 100, 500);
    assert_int_equal(2000000, s.bytes_per_s);
    train(&s, 60, START + 1000000, 100, 2000);
    assert_in_range(s.bytes_per_s, 500000, 700000);
    assert_false(s.is_bound);
}

TEST(few_packets_show_nothing) {
    xl_capacity s = {0};
    train(&s, 8, START, 100, 1000); /* 7000 bytes after the first */
    assert_int_equal(0, s.bytes_per_s);
    train(&s, 40, START + 1000000, 10, 50); /* all within 2 ms */
    assert_int_equal(0, s.bytes_per_s);
    assert_int_equal(0, s.measured_at);
    uint64_t last = train(&s, 40, START + 2000000, 100, 1000);
    assert_int_equal(last, s.measured_at);
    train(&s, 40, START + 3000000, 100, 175000); /* a packet every 175 ms: no train has enough of them */
    assert_int_equal(last, s.measured_at);
}

TEST(a_long_train_is_measured_in_parts) {
    xl_capacity s = {0};
    uint64_t now = train(&s, 100, START, 100, 1000);
    for (unsigned i = 0; i < 100; i++) /* the same busy period, the link has become four times as fast */
        xl_capacity_acked(&s, 1000, START + 10000 + i * 10, START, now += 250);
    for (unsigned i = 0; i < 600; i++)
        xl_capacity_acked(&s, 1000, START + 20000 + i * 10, START, now += 250);
    assert_in_range(s.bytes_per_s, 3700000, 4000000);
}

TEST_MAIN(NULL, NULL)
