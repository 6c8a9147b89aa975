#include "tests/unit.h"
#include "recovery/pacer.h"
#include "testing/test_random.h"

#define MTU   1200
#define BURST (10 * MTU)

TEST(what_leaves_stays_below_rate_times_time_plus_burst) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t rng = seed, start = test_below(&rng, 1000000000), now = start;
        uint64_t rate = 1000 + test_below(&rng, 20000000), sent = 0;
        xl_pacer p;
        xl_pacer_init(&p, BURST, now);
        xl_pacer_set_rate(&p, rate, now);
        for (int i = 0; i < 5000; i++) {
            uint64_t bytes = 1 + test_below(&rng, MTU), next = xl_pacer_next(&p, now);
            if (next > now && test_below(&rng, 2)) {
                now += test_below(&rng, 2 * (next - now)); /* any wake-up, early or late */
                continue;
            }
            if (next > now)
                now = next;
            /* A packet may leave as soon as one byte is free, so the bound is for the sum before it. */
            assert_true((double)sent < (double)(now - start) * (double)rate / 1e6 + BURST);
            xl_pacer_sent(&p, bytes, now);
            sent += bytes;
            assert_true(p.tokens <= (int64_t)BURST * 1000000);
            assert_true(p.tokens >= -(int64_t)MTU * 1000000);
        }
    }
}

TEST(a_busy_sender_gets_the_whole_rate) {
    uint64_t now = 5, sent = 0, rate = 1234567;
    xl_pacer p;
    xl_pacer_init(&p, BURST, now);
    xl_pacer_set_rate(&p, rate, now);
    while (now < 10000005) {
        uint64_t next = xl_pacer_next(&p, now);
        if (next > now) {
            now = next;
            continue;
        }
        xl_pacer_sent(&p, MTU, now);
        sent += MTU;
    }
    assert_true(sent >= 10 * rate);
}

TEST(next_is_the_earliest_time_that_works) {
    xl_pacer p;
    xl_pacer_init(&p, MTU, 0);
    xl_pacer_set_rate(&p, 1000000, 0); /* one byte a microsecond */
    xl_pacer_sent(&p, MTU, 0);
    xl_pacer_sent(&p, MTU, 0); /* MTU in debt */
    uint64_t next = xl_pacer_next(&p, 0);
    assert_int_equal(next, MTU + 1);
    assert_true(xl_pacer_next(&p, next - 1) > next - 1);
    assert_int_equal(xl_pacer_next(&p, next), next);
}

TEST(without_a_rate_nothing_waits) {
    xl_pacer p;
    xl_pacer_init(&p, MTU, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(xl_pacer_next(&p, 7), 7);
        xl_pacer_sent(&p, MTU, 7);
    }
    xl_pacer_set_rate(&p, 1000, 7);
    assert_int_equal(xl_pacer_next(&p, 7), 7); /* without debt */
}

TEST(a_new_rate_counts_from_now_on) {
    xl_pacer p;
    xl_pacer_init(&p, MTU, 0);
    xl_pacer_set_rate(&p, 1000000, 0);
    xl_pacer_sent(&p, 2 * MTU, 0);
    xl_pacer_set_rate(&p, 1000, 1000); /* 1000 of the 1200 bytes in debt are paid by then */
    assert_int_equal(xl_pacer_next(&p, 1000), 1000 + 200000 + 1);
}

TEST(a_burst_of_another_size_leaves_what_is_owed) {
    xl_pacer a, b;
    xl_pacer_init(&a, 10 * MTU, 0);
    xl_pacer_init(&b, 12 * MTU, 0);
    xl_pacer_set_rate(&a, 1000000, 0);
    xl_pacer_set_rate(&b, 1000000, 0);
    for (int i = 0; i < 3; i++) {
        xl_pacer_sent(&a, MTU, 100);
        xl_pacer_sent(&b, MTU, 100);
    }
    xl_pacer_set_burst(&a, 12 * MTU, 200);
    assert_int_equal(xl_pacer_next(&b, 200), xl_pacer_next(&a, 200));
    xl_pacer_sent(&a, 12 * MTU, 300);
    xl_pacer_sent(&b, 12 * MTU, 300);
    assert_int_equal(xl_pacer_next(&b, 300), xl_pacer_next(&a, 300));
}

TEST(a_long_rest_and_a_huge_rate_do_not_overflow) {
    xl_pacer p;
    xl_pacer_init(&p, BURST, 0);
    xl_pacer_set_rate(&p, UINT64_MAX / 2, 0);
    xl_pacer_sent(&p, BURST + MTU, 0);
    assert_int_equal(xl_pacer_next(&p, UINT64_MAX / 2), UINT64_MAX / 2);
    xl_pacer_sent(&p, 1, UINT64_MAX / 2);
    assert_true(p.tokens <= (int64_t)BURST * 1000000);
}

TEST_MAIN(NULL, NULL)
