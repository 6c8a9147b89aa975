/* Lateness over time. */
#include "tests/unit.h"
#include "emulator/mpshell/series.h"

TEST(a_slot_keeps_its_largest_figure) {
    mp_series series = {.count = 0};
    mp_series_raise(&series, 2 * MP_SLOT_US, 70);
    mp_series_raise(&series, 2 * MP_SLOT_US + MP_SLOT_US - 1, 90);
    mp_series_raise(&series, 2 * MP_SLOT_US + 1, 80);
    assert_int_equal(series.count, 3);
    assert_int_equal(mp_series_at(&series, 1), 0);
    assert_int_equal(mp_series_at(&series, 2), 90);
    assert_int_equal(mp_series_at(&series, 3), 0);
    mp_series_free(&series);
}

TEST(sums_and_unions_go_by_slot_however_long_a_series_grows) {
    mp_series sums = {.count = 0};
    mp_series largest = {.count = 0};
    for (size_t i = 0; i < 10000; i++)
        mp_series_add(&sums, i * MP_SLOT_US, i);
    mp_series_add(&sums, 9999 * MP_SLOT_US, 5);
    mp_series_raise(&largest, 9999 * MP_SLOT_US, 7);
    mp_series_raise(&largest, 20000 * MP_SLOT_US, 1);
    mp_series_merge(&largest, &sums);
    assert_int_equal(mp_series_at(&largest, 9999), 10004);
    assert_int_equal(mp_series_at(&largest, 300), 300);
    assert_int_equal(mp_series_at(&largest, 20000), 1);
    mp_series_free(&sums);
    mp_series_free(&largest);
}

TEST(a_time_beyond_all_runs_takes_no_memory) {
    mp_series series = {.count = 0};
    mp_series_raise(&series, UINT64_MAX, 70);
    assert_int_equal(series.count, 0);
    assert_null(series.us);
    mp_series_free(&series);
}

TEST_MAIN(NULL, NULL)
