#include "tests/unit.h"
#include "path/ecn.h"

TEST(ten_packets_are_marked_until_an_acknowledgement_confirms_it) {
    xl_ecn e;
    xl_ecn_start(&e, true);
    for (int i = 0; i < 10; i++)
        assert_true(xl_ecn_mark(&e, 0));
    assert_false(xl_ecn_mark(&e, 0));
    assert_int_equal(XL_ECN_UNKNOWN, e.state);
    xl_ecn_validated(&e, true);
    assert_true(xl_ecn_mark(&e, 0));
    assert_true(xl_ecn_mark(&e, 1));
}

TEST(a_failure_is_for_good) {
    xl_ecn e;
    xl_ecn_start(&e, true);
    xl_ecn_validated(&e, false);
    xl_ecn_validated(&e, true);
    assert_false(xl_ecn_mark(&e, 0));
    xl_ecn_start(&e, false);
    xl_ecn_validated(&e, true);
    assert_false(xl_ecn_mark(&e, 0));
}

TEST(a_probe_timeout_ends_the_test) {
    xl_ecn e;
    xl_ecn_start(&e, true);
    assert_true(xl_ecn_mark(&e, 0));
    assert_false(xl_ecn_mark(&e, 1));
    assert_false(xl_ecn_mark(&e, 0));
}

TEST(wrong_counts_are_seen) {
    const struct {
        xl_ecn_counts counts;
        uint64_t acked;
        bool has_counts, is_right;
        uint64_t new_ce;
    } cases[] = {
        {{20, 0, 2}, 3, true, true, 1},   /* 18 and 1 were known: two more, and a CE */
        {{19, 0, 2}, 2, true, true, 1},   /* … */
        {{19, 0, 1}, 2, true, false, 0},  /* fewer marks than packets acknowledged: bleached */
        {{20, 0, 1}, 3, true, false, 0},  /* … */
        {{17, 0, 3}, 1, true, false, 0},  /* counts do not fall */
        {{20, 0, 0}, 1, true, false, 0},  /* … */
        {{20, 1, 2}, 1, true, false, 0},  /* ECT(1) was never sent */
        {{29, 0, 2}, 1, true, false, 0},  /* more than were sent */
        {{18, 0, 1}, 0, false, true, 0},  /* nothing marked was acknowledged */
        {{18, 0, 1}, 1, false, false, 0}, /* no counts where there have to be some */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        xl_ecn_space s = {.sent = 30, .reported = {18, 0, 1}};
        uint64_t new_ce;
        bool is_right = xl_ecn_take_counts(&s, cases[i].has_counts ? &cases[i].counts : NULL, cases[i].acked, &new_ce);
        assert_int_equal(cases[i].is_right, is_right);
        assert_int_equal(cases[i].new_ce, new_ce);
        assert_int_equal(is_right ? cases[i].counts.ect0 : 18, s.reported.ect0);
    }
}

TEST_MAIN(NULL, NULL)
