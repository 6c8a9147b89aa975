#include "tests/unit.h"
#include "emulator/saturatr/train.h"

TEST(a_train_leaves_at_once_and_the_next_one_after_the_interval) {
    sat_train train;
    sat_train_init(&train, 10, 100000, 5000);
    assert_int_equal(sat_train_allowance(&train, 5000), 10);
    sat_train_on_sent(&train, 10);
    assert_int_equal(sat_train_next(&train), 105000);
    assert_int_equal(sat_train_allowance(&train, 104999), 0);
    assert_int_equal(sat_train_allowance(&train, 105000), 10);
    assert_int_equal(train.next_seq, 10);
}

TEST(what_the_device_did_not_take_follows) {
    sat_train train;
    sat_train_init(&train, 10, 100000, 0);
    sat_train_allowance(&train, 0);
    sat_train_on_sent(&train, 4);
    assert_int_equal(sat_train_next(&train), 0);
    assert_int_equal(sat_train_allowance(&train, 1000), 6);
    assert_int_equal(train.next_seq, 4);
}

TEST(the_rest_of_a_train_is_given_up_when_the_next_one_is_due) {
    sat_train train;
    sat_train_init(&train, 10, 100000, 0);
    sat_train_allowance(&train, 0);
    sat_train_on_sent(&train, 4);
    assert_int_equal(sat_train_allowance(&train, 100000), 10);
    assert_int_equal(train.next_seq, 10); /* the place in the train is still seq % 10 */
}

TEST(trains_keep_their_times_after_a_pause_of_the_sender) {
    sat_train train;
    sat_train_init(&train, 2, 100000, 0);
    sat_train_allowance(&train, 0);
    sat_train_on_sent(&train, 2);
    assert_int_equal(sat_train_allowance(&train, 350000), 2);
    assert_int_equal(train.next_seq, 2);
    sat_train_on_sent(&train, 2);
    assert_int_equal(sat_train_next(&train), 400000);
}

TEST(a_train_has_limits) {
    assert_true(sat_train_is_allowed(1, SAT_EVERY_LEAST_US));
    assert_true(sat_train_is_allowed(SAT_TRAIN_MOST, 50000));
    assert_true(sat_train_is_allowed(SAT_TRAIN_MOST, SAT_EVERY_MOST_US));
    assert_false(sat_train_is_allowed(0, 100000));
    assert_false(sat_train_is_allowed(SAT_TRAIN_MOST + 1, 100000));
    assert_false(sat_train_is_allowed(1, SAT_EVERY_LEAST_US - 1));
    assert_false(sat_train_is_allowed(1, SAT_EVERY_MOST_US + 1));
    assert_false(sat_train_is_allowed(51, 5000)); /* more than 10 packets a ms */
    assert_false(sat_train_is_allowed(UINT64_MAX, 5000));
}

TEST_MAIN(NULL, NULL)
