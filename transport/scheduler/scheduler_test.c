#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/scheduler.h"

static xl_scheduler_view view_of(size_t n, const uint64_t *srtt_us) {
    xl_scheduler_view v = {.count = n};
    for (size_t i = 0; i < n; i++)
        v.path[i] = (xl_scheduler_path){.index = (int)i, .has_window = true, .srtt_us = srtt_us[i], .has_rtt = true};
    return v;
}

static size_t order_of(const char *name, const xl_scheduler_view *v, size_t *order) {
    uint8_t state[XL_SCHEDULER_STATE_BYTES] = {0};
    return xl_scheduler_find(name)->order(state, v, order);
}

static const char *const by_rtt[] = {"minrtt", "xlink"};

static void smallest_rtt_goes_first(void **state) {
    (void)state;
    uint64_t srtt[] = {90000, 20000, 50000, 20000};
    size_t order[XL_MAX_PATHS], want[] = {1, 3, 2, 0};
    for (size_t k = 0; k < 2; k++) {
        xl_scheduler_view v = view_of(4, srtt);
        assert_int_equal(4, order_of(by_rtt[k], &v, order));
        assert_memory_equal(want, order, sizeof(want));
    }
}

static void a_full_window_passes_to_the_next(void **state) {
    (void)state;
    uint64_t srtt[] = {20000, 50000};
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, srtt);
    v.path[0].has_window = false;
    assert_int_equal(1, order_of("minrtt", &v, order));
    assert_int_equal(1, order[0]);
    v.path[1].has_window = false;
    assert_int_equal(0, order_of("minrtt", &v, order));
}

static void a_suspect_path_is_used_only_when_nothing_else_is_left(void **state) {
    (void)state;
    uint64_t srtt[] = {20000, 50000};
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, srtt);
    v.path[0].is_suspect = true;
    assert_int_equal(1, order_of("minrtt", &v, order));
    assert_int_equal(1, order[0]);
    v.path[1].has_window = false; /* rather wait for the healthy one */
    assert_int_equal(0, order_of("minrtt", &v, order));
    v.path[1].is_suspect = true;
    assert_int_equal(1, order_of("minrtt", &v, order));
    assert_int_equal(0, order[0]);
}

static void a_standby_path_waits_behind_available_ones(void **state) {
    (void)state;
    uint64_t srtt[] = {20000, 50000};
    size_t order[XL_MAX_PATHS];
    xl_scheduler_view v = view_of(2, srtt);
    v.path[0].is_standby = true;
    assert_int_equal(1, order_of("xlink", &v, order));
    assert_int_equal(1, order[0]);
    v.path[1].is_suspect = true; /* standby and answering beats available and silent */
    assert_int_equal(1, order_of("xlink", &v, order));
    assert_int_equal(0, order[0]);
}

static void unknown_names_are_not_found(void **state) {
    (void)state;
    assert_null(xl_scheduler_find("fastest"));
    assert_string_equal("minrtt", xl_scheduler_find("minrtt")->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_rtt_goes_first),
        cmocka_unit_test(a_full_window_passes_to_the_next),
        cmocka_unit_test(a_suspect_path_is_used_only_when_nothing_else_is_left),
        cmocka_unit_test(a_standby_path_waits_behind_available_ones),
        cmocka_unit_test(unknown_names_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
