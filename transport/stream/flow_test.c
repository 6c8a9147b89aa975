#include "tests/unit.h"
#include "stream/flow.h"
#include "wire/cursor.h"

TEST(a_new_limit_is_due_when_half_of_the_window_is_consumed) {
    xl_flow_in f;
    xl_flow_in_init(&f, 1000, 0);
    assert_int_equal(f.limit, 1000);
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 499;
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 500;
    assert_true(xl_flow_in_should_update(&f));
    assert_int_equal(xl_flow_in_update(&f, 0, 0), 1500);
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 1500;
    assert_int_equal(xl_flow_in_update(&f, 0, 0), 2500);
}

TEST(a_limit_never_falls_and_never_leaves_the_number_space) {
    xl_flow_in f;
    xl_flow_in_init(&f, UINT64_MAX, 0);
    assert_true(f.limit == XL_VARINT_MAX);
    f.consumed = XL_VARINT_MAX;
    assert_false(xl_flow_in_should_update(&f));
    assert_true(xl_flow_in_update(&f, 0, 0) == XL_VARINT_MAX);
    xl_flow_in_init(&f, 0, 0);
    assert_false(xl_flow_in_should_update(&f));
}

/* Consumes half of the window, and updates the limit at `now`. Returns the window. */
static uint64_t window_after(xl_flow_in *f, uint64_t now, uint64_t rtt_us) {
    f->consumed = f->limit - f->window / 2;
    uint64_t limit = xl_flow_in_update(f, now, rtt_us);
    assert_int_equal(limit, f->consumed + f->window);
    return f->window;
}

TEST(a_window_that_is_read_within_two_rtts_doubles_up_to_its_most) {
    xl_flow_in f;
    xl_flow_in_init(&f, 1000, 3000);
    assert_int_equal(window_after(&f, 50, 100), 1000); /* the first shows nothing: there is no earlier time */
    assert_int_equal(window_after(&f, 250, 100), 1000);
    assert_int_equal(window_after(&f, 449, 100), 2000);
    assert_int_equal(window_after(&f, 449, 0), 2000); /* without an RTT */
    assert_int_equal(window_after(&f, 500, 100), 3000);
    assert_int_equal(window_after(&f, 501, 100), 3000);
}

TEST(a_limit_that_is_announced_again_does_not_make_the_window_grow) {
    xl_flow_in f;
    xl_flow_in_init(&f, 1000, 4000);
    assert_int_equal(window_after(&f, 50, 100), 1000);
    f.consumed += 499;
    assert_int_equal(xl_flow_in_update(&f, 60, 100), f.consumed + 1000);
    assert_int_equal(window_after(&f, 250, 100), 1000); /* two RTTs after the update was due */
}

TEST(a_window_without_a_most_stays) {
    xl_flow_in f;
    xl_flow_in_init(&f, 1000, 0);
    assert_int_equal(window_after(&f, 50, 100), 1000);
    assert_int_equal(window_after(&f, 51, 100), 1000);
}

TEST(the_peers_limit_only_rises) {
    xl_flow_out f;
    xl_flow_out_init(&f, 100);
    f.used = 60;
    assert_int_equal(xl_flow_out_left(&f), 40);
    assert_false(xl_flow_out_raise(&f, 99));
    assert_false(xl_flow_out_raise(&f, 100));
    assert_int_equal(xl_flow_out_left(&f), 40);
    assert_true(xl_flow_out_raise(&f, 160));
    assert_int_equal(xl_flow_out_left(&f), 100);
}

TEST(blocked_is_said_once_a_limit) {
    xl_flow_out f;
    xl_flow_out_init(&f, 100);
    assert_false(xl_flow_out_take_blocked(&f));
    f.used = 100;
    assert_true(xl_flow_out_take_blocked(&f));
    assert_false(xl_flow_out_take_blocked(&f));
    xl_flow_out_raise(&f, 200);
    assert_false(xl_flow_out_take_blocked(&f));
    f.used = 200;
    assert_true(xl_flow_out_take_blocked(&f));
}

TEST_MAIN(NULL, NULL)
