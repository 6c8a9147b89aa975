#include "tests/unit.h"
#include "recovery/rtt.h"

#define RTT_TEST(name) TEST_MADE(name, xl_rtt, r, xl_rtt_init, (void))

RTT_TEST(before_a_sample_the_timeout_is_that_of_the_initial_rtt) {
    assert_false(r->has_sample);
    assert_int_equal(xl_rtt_pto(r, 0), 999000); /* 333 + 4 x 166.5 ms */
    assert_int_equal(xl_rtt_loss_delay(r), 374625);
}

RTT_TEST(the_first_sample_sets_everything_and_ignores_the_ack_delay) {
    xl_rtt_sample(r, 100000, 20000);
    assert_true(r->has_sample);
    assert_int_equal(r->min, 100000);
    assert_int_equal(r->smoothed, 100000);
    assert_int_equal(r->var, 50000);
}

RTT_TEST(later_samples_follow_the_filter_of_section_5_3) {
    xl_rtt_sample(r, 100000, 0);
    xl_rtt_sample(r, 140000, 24000); /* adjusted 116000 */
    assert_int_equal(r->latest, 140000);
    assert_int_equal(r->min, 100000);
    assert_int_equal(r->var, (3 * 50000 + 16000) / 4);
    assert_int_equal(r->smoothed, (7 * 100000 + 116000) / 8);
    assert_int_equal(xl_rtt_pto(r, 25000), 102000 + 4 * 41500 + 25000);
    assert_int_equal(xl_rtt_persistent(r, 25000), 3 * (102000 + 4 * 41500 + 25000));
    assert_int_equal(xl_rtt_loss_delay(r), 140000 + 140000 / 8);
}

RTT_TEST(an_ack_delay_that_would_undercut_the_minimum_is_not_believed) {
    xl_rtt_sample(r, 100000, 0);
    xl_rtt_sample(r, 108000, 9000); /* 99 ms < min */
    assert_int_equal(r->smoothed, (7 * 100000 + 108000) / 8);
    xl_rtt_sample(r, 80000, UINT64_MAX); /* new minimum, absurd delay */
    assert_int_equal(r->min, 80000);
    assert_true(r->smoothed > 80000 && r->smoothed < 108000);
}

RTT_TEST(after_persistent_congestion_the_newest_sample_is_the_minimum) {
    xl_rtt_sample(r, 50000, 0);
    xl_rtt_sample(r, 200000, 0);
    xl_rtt_restart_min(r);
    assert_int_equal(r->min, 200000);
    xl_rtt_sample(r, 150000, 0);
    assert_int_equal(r->min, 150000);
    xl_rtt_sample(r, 180000, 0);
    assert_int_equal(r->min, 150000);
}

RTT_TEST(timers_never_fall_below_the_granularity) {
    for (int i = 0; i < 100; i++)
        xl_rtt_sample(r, 10, 0);
    assert_int_equal(xl_rtt_loss_delay(r), XL_GRANULARITY_US);
    assert_int_equal(xl_rtt_pto(r, 0), r->smoothed + XL_GRANULARITY_US);
}

TEST_MAIN(NULL, NULL)
