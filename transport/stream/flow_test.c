#include "tests/unit.h"
#include "stream/flow.h"
#include "wire/cursor.h"

TEST(a_new_limit_is_due_when_half_of_the_window_is_consumed) {
    xl_flow_in f;
    xl_flow_in_init(&f, 1000);
    assert_int_equal(f.limit, 1000);
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 499;
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 500;
    assert_true(xl_flow_in_should_update(&f));
    assert_int_equal(xl_flow_in_update(&f), 1500);
    assert_false(xl_flow_in_should_update(&f));
    f.consumed = 1500;
    assert_int_equal(xl_flow_in_update(&f), 2500);
}

TEST(a_limit_never_falls_and_never_leaves_the_number_space) {
    xl_flow_in f;
    xl_flow_in_init(&f, UINT64_MAX);
    assert_true(f.limit == XL_VARINT_MAX);
    f.consumed = XL_VARINT_MAX;
    assert_false(xl_flow_in_should_update(&f));
    assert_true(xl_flow_in_update(&f) == XL_VARINT_MAX);
    xl_flow_in_init(&f, 0);
    assert_false(xl_flow_in_should_update(&f));
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
