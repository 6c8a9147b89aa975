#include <string.h>

#include "tests/unit.h"
#include "emulator/link/lateness.h"

static link_lateness lateness;

static int clear(void **state) {
    (void)state;
    memset(&lateness, 0, sizeof lateness);
    return 0;
}

TEST_WITH(without_records_everything_is_0, clear, NULL) {
    assert_int_equal(link_lateness_quantile(&lateness, 0.5), 0);
    assert_int_equal(lateness.max_us, 0);
}

TEST_WITH(small_values_are_exact, clear, NULL) {
    for (uint64_t v = 1; v <= 100; v++)
        link_lateness_record(&lateness, v);
    assert_int_equal(link_lateness_quantile(&lateness, 0.50), 50);
    assert_int_equal(link_lateness_quantile(&lateness, 0.99), 99);
    assert_int_equal(link_lateness_quantile(&lateness, 1.00), 100);
    assert_int_equal(lateness.max_us, 100);
}

TEST_WITH(over_1ms_means_more_than_1000_us, clear, NULL) {
    link_lateness_record(&lateness, 1000);
    assert_int_equal(lateness.over_1ms, 0);
    link_lateness_record(&lateness, 1001);
    assert_int_equal(lateness.over_1ms, 1);
    assert_int_equal(lateness.count, 2);
}

TEST_WITH(large_values_are_within_2_per_cent_and_never_too_small, clear, NULL) {
    for (uint64_t v = 128; v < UINT64_C(1) << 34; v = v * 5 / 4 + 1) {
        clear(NULL);
        link_lateness_record(&lateness, v);
        link_lateness_record(&lateness, v);
        link_lateness_record(&lateness, v * 3);
        uint64_t median = link_lateness_quantile(&lateness, 0.5);
        assert_true(median >= v);
        assert_true((double)median <= 1.02 * (double)v);
    }
}

TEST_WITH(huge_values_fall_into_the_last_bucket, clear, NULL) {
    link_lateness_record(&lateness, UINT64_MAX);
    assert_int_equal(link_lateness_quantile(&lateness, 0.5), UINT64_MAX);
    assert_int_equal(lateness.buckets[LINK_LATENESS_BUCKETS - 1], 1);
}

TEST_MAIN(NULL, NULL)
