#include <math.h>

#include "tests/unit.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/clock.h"

TEST(same_delays_give_the_offset_exactly) {
    sat_clock clock = {0};
    sat_clock_add(&clock, 1000, 501500, 501600, 2100, false); /* 500 there, 500 back, server 500000 ahead */
    assert_int_equal(clock.exchanges, 1);
    assert_true(sat_clock_offset_us(&clock, 0) == 500000.0);
    assert_true(sat_clock_uncertainty_us(&clock) == 500.0);
    assert_int_equal(sat_clock_to_client(&clock, 501500), 1500);
}

TEST(a_server_behind_has_a_negative_offset) {
    sat_clock clock = {0};
    sat_clock_add(&clock, 900000, 400300, 400300, 900600, false);
    assert_true(sat_clock_offset_us(&clock, 0) == -500000.0);
    assert_int_equal(sat_clock_to_client(&clock, 400300), 900300);
}

TEST(the_shortest_round_trip_counts) {
    sat_clock clock = {0};
    sat_clock_add(&clock, 1000, 1100 + 70000, 1100 + 70000, 1000 + 70200, false); /* queued towards the server */
    sat_clock_add(&clock, 100000, 100100, 100100, 100200, false);
    sat_clock_add(&clock, 200000, 200100, 200100, 290000, false);
    assert_true(sat_clock_offset_us(&clock, 0) == 0.0);
    assert_true(sat_clock_uncertainty_us(&clock) == 100.0);
}

TEST(never_off_by_more_than_it_says) {
    link_rng rng = {.state = 5};
    for (int round = 0; round < 500; round++) {
        sat_clock clock = {0};
        int64_t offset = (int64_t)(link_rng_next(&rng) % 2000000000) - 1000000000;
        for (int i = 0; i < 10; i++) {
            uint64_t t1 = UINT64_C(5000000000) + (uint64_t)i * 100000;
            uint64_t t2 = t1 + link_rng_next(&rng) % 50000 + (uint64_t)offset;
            uint64_t t3 = t2 + link_rng_next(&rng) % 1000;
            uint64_t t4 = t3 - (uint64_t)offset + link_rng_next(&rng) % 50000;
            sat_clock_add(&clock, t1, t2, t3, t4, i >= 5);
        }
        assert_true(fabs(sat_clock_offset_us(&clock, UINT64_C(5000000000)) - (double)offset) <=
                    sat_clock_uncertainty_us(&clock));
        assert_true(sat_clock_drift_ppm(&clock) == 0.0); /* within the errors */
    }
}

TEST(follows_a_clock_that_drifts) {
    sat_clock clock = {0};
    /* In 60 s the server's clock gains 6000 us: 100 ppm. */
    sat_clock_add(&clock, 1000000, 1000100, 1000100, 1000200, false);
    sat_clock_add(&clock, 61000000, 61006100, 61006100, 61000200, true);
    assert_true(fabs(sat_clock_drift_ppm(&clock) - 100.0) < 0.1);
    assert_true(fabs(sat_clock_offset_us(&clock, 31000200) - 3000.0) < 1.0);
    assert_in_range(sat_clock_to_client(&clock, 31003200), 31000199, 31000202);
}

TEST(ignores_impossible_times) {
    sat_clock clock = {0};
    sat_clock_add(&clock, 1000, 5000, 5000, 900, false);             /* the answer arrived before the probe was sent */
    sat_clock_add(&clock, 1000, 5000, 4000, 2000, false);            /* answered before it arrived */
    sat_clock_add(&clock, 1000, 5000, 9000, 2000, false);            /* longer at the server than the round trip */
    sat_clock_add(&clock, 1000, UINT64_MAX, UINT64_MAX, 2000, true); /* impossible times */
    sat_clock_add(&clock, 1000, 2000, 2000, UINT64_MAX, true);
    assert_false(clock.early.valid || clock.late.valid);
    assert_int_equal(clock.exchanges, 0);
}

TEST_MAIN(NULL, NULL)
