#include "tests/unit.h"
#include "emulator/saturatr/sizes.h"

#define SECOND_US 1000000

static const sat_sizes three = {.count = 3, .bytes = {100, 400, 1500}};

TEST(sizes_have_limits) {
    sat_sizes most = {.count = SAT_SIZES_MOST};
    for (uint32_t i = 0; i < SAT_SIZES_MOST; i++)
        most.bytes[i] = 100 + 90 * i;
    most.bytes[SAT_SIZES_MOST - 1] = 1500;
    assert_true(sat_sizes_are_allowed(&three, 1500));
    assert_true(sat_sizes_are_allowed(&(sat_sizes){.count = 1, .bytes = {1500}}, 1500));
    assert_true(sat_sizes_are_allowed(&most, 1500));
    most.count++;
    assert_false(sat_sizes_are_allowed(&most, 1500));
    assert_false(sat_sizes_are_allowed(&three, 1400)); /* the largest one is the reference */
    assert_false(sat_sizes_are_allowed(&(sat_sizes){.count = 0}, 1500));
    assert_false(sat_sizes_are_allowed(&(sat_sizes){.count = 1, .bytes = {1501}}, 1501));
    assert_false(sat_sizes_are_allowed(&(sat_sizes){.count = 2, .bytes = {99, 1500}}, 1500));
    assert_false(sat_sizes_are_allowed(&(sat_sizes){.count = 3, .bytes = {100, 100, 1500}}, 1500));
    assert_false(sat_sizes_are_allowed(&(sat_sizes){.count = 3, .bytes = {400, 100, 1500}}, 1500));
}

TEST(packets_have_the_sizes_in_turn) {
    for (uint64_t seq = 0; seq < 30; seq++)
        assert_int_equal(sat_sizes_of(&three, seq), three.bytes[seq % 3]);
}

static void arrive(sat_latencies *latencies, uint64_t seq, int64_t delay_us) {
    const int64_t sent = (int64_t)seq * 1000;
    sat_latencies_add(latencies, seq, sat_sizes_of(latencies->sizes, seq), sent, sent + delay_us);
}

TEST(latencies_are_medians_less_that_of_the_largest_size) {
    sat_latencies latencies;
    double delay = 0;
    assert_true(sat_latencies_init(&latencies, &three, 9, SECOND_US));
    static const int64_t delays[] = {20000, 23000, 30000, 90000, 25000, 31000, 21000, 24000, 32000};
    for (uint64_t i = 9; i-- > 0;) /* in any order */
        arrive(&latencies, i, delays[i]);
    assert_true(sat_latencies_median(&latencies, 0, &delay) && delay == 21000);
    assert_true(sat_latencies_median(&latencies, 1, &delay) && delay == 24000);
    assert_true(sat_latencies_at(&latencies, 50) == -10000);
    assert_true(sat_latencies_at(&latencies, 100) == -10000);
    assert_true(sat_latencies_at(&latencies, 200) == -9000);
    assert_true(sat_latencies_at(&latencies, 400) == -7000);
    assert_true(sat_latencies_at(&latencies, 1500) == 0);
    assert_true(sat_latencies_at(&latencies, 2000) == 0);
    sat_latencies_free(&latencies);
}

TEST(a_size_that_never_arrived_has_no_median) {
    sat_latencies latencies;
    double delay = 0;
    assert_true(sat_latencies_init(&latencies, &three, 5, SECOND_US));
    arrive(&latencies, 0, 20000);
    arrive(&latencies, 3, 22000);
    assert_true(sat_latencies_median(&latencies, 0, &delay) && delay == 21000); /* an even number: the mean of two */
    assert_false(sat_latencies_median(&latencies, 1, &delay));
    sat_latencies_free(&latencies);
}

TEST(what_cannot_be_is_left_out) {
    sat_latencies latencies;
    double delay = 0;
    assert_true(sat_latencies_init(&latencies, &three, 12, SECOND_US));
    arrive(&latencies, 0, 20000);
    arrive(&latencies, 0, 99000);                           /* a copy */
    sat_latencies_add(&latencies, 3, 400, 0, 99000);        /* not the size that it was sent with */
    sat_latencies_add(&latencies, 3, 400, 0, 99000);        /* twice */
    sat_latencies_add(&latencies, 6, 100, 0, INT64_MAX);    /* a delay of more than an hour */
    sat_latencies_add(&latencies, 9, 100, -1, 20000);       /* sent before the recording */
    sat_latencies_add(&latencies, 1, 400, SECOND_US, 2000); /* after it */
    sat_latencies_add(&latencies, 4, 400, INT64_MIN, INT64_MAX);
    sat_latencies_add(&latencies, 12, 100, 0, 20000); /* never sent */
    sat_latencies_add(&latencies, UINT64_MAX, 100, 0, 20000);
    assert_true(sat_latencies_median(&latencies, 0, &delay) && delay == 20000);
    assert_int_equal(latencies.arrived[0], 1);
    assert_int_equal(latencies.left_out, 2);
    assert_int_equal(latencies.outside, 3);
    sat_latencies_free(&latencies);
    assert_true(sat_latencies_init(&latencies, &three, 0, SECOND_US)); /* nothing was sent */
    arrive(&latencies, 0, 20000);
    assert_false(sat_latencies_median(&latencies, 0, &delay));
    sat_latencies_free(&latencies);
}

TEST_MAIN(NULL, NULL)
