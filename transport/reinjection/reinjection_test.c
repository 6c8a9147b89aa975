#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "reinjection/reinjection.h"

static xl_reinjection_scope scope(const char *mode, bool stream_flushed, bool frame_flushed, bool unsent) {
    xl_reinjection_view v = {.stream_flushed = stream_flushed,
                             .has_mark = true,
                             .frame_flushed = frame_flushed,
                             .connection_has_unsent = unsent};
    return xl_reinjection_find(mode)->scope(&v);
}

static void modes_differ_in_when_they_copy(void **state) {
    (void)state;
    /* In the middle of the stream, its marked frame already sent. */
    assert_int_equal(XL_REINJECT_NOTHING, scope("none", false, true, true));
    assert_int_equal(XL_REINJECT_NOTHING, scope("appending", false, true, true));
    assert_int_equal(XL_REINJECT_NOTHING, scope("stream", false, true, true));
    assert_int_equal(XL_REINJECT_MARKED_FRAME, scope("frame", false, true, true));
    assert_int_equal(XL_REINJECT_NOTHING, scope("frame", false, false, true));
    /* The stream's last packet was sent, a later stream has unsent data. */
    assert_int_equal(XL_REINJECT_NOTHING, scope("none", true, true, true));
    assert_int_equal(XL_REINJECT_NOTHING, scope("appending", true, true, true));
    assert_int_equal(XL_REINJECT_STREAM, scope("stream", true, true, true));
    assert_int_equal(XL_REINJECT_STREAM, scope("frame", true, true, true));
    /* Nothing is unsent anywhere. */
    assert_int_equal(XL_REINJECT_STREAM, scope("appending", true, true, false));
}

static void play_time_left_is_the_smaller_estimate(void **state) {
    (void)state;
    assert_int_equal(1000000, xl_qoe_play_time_left(&(xl_qoe){500000, 30, 4000000, 30})); /* both say 1 s */
    assert_int_equal(500000, xl_qoe_play_time_left(&(xl_qoe){500000, 15, 4000000, 30}));  /* frames say less */
    assert_int_equal(250000, xl_qoe_play_time_left(&(xl_qoe){125000, 90, 4000000, 30}));  /* bytes say less */
    assert_int_equal(3000000, xl_qoe_play_time_left(&(xl_qoe){0, 90, 0, 30}));            /* no bit rate */
    assert_int_equal(250000, xl_qoe_play_time_left(&(xl_qoe){125000, 0, 4000000, 0}));    /* no frame rate */
    assert_true(xl_qoe_play_time_left(&(xl_qoe){5, 5, 0, 0}) == UINT64_MAX);
    assert_true(xl_qoe_play_time_left(&(xl_qoe){UINT64_MAX, UINT64_MAX, 1, 1}) > UINT64_C(1) << 60);
}

/* Algorithm 1 with T_th1 = 300 ms and T_th2 = 1000 ms. */
static bool decide(uint64_t play_time_ms, uint64_t deliver_ms, uint64_t elapsed_ms) {
    xl_qoe_gate g;
    xl_qoe_gate_init(&g, true, 300000, 1000000);
    xl_qoe q = {.cached_frames = play_time_ms, .fps = 1000};
    xl_qoe_gate_signal(&g, &q, 5000000);
    return xl_qoe_gate_decide(&g, deliver_ms * 1000, 5000000 + elapsed_ms * 1000).on;
}

static void double_threshold_control_follows_algorithm_1(void **state) {
    (void)state;
    assert_false(decide(1001, 5000, 0)); /* above T_th2: off, however slow the delivery */
    assert_true(decide(299, 0, 0));      /* below T_th1: on, however fast */
    assert_true(decide(600, 700, 0));    /* between: on if it would not arrive in time */
    assert_false(decide(600, 500, 0));
    assert_false(decide(600, 600, 0));
    assert_true(decide(300, 301, 0)); /* the thresholds themselves belong to the middle */
    assert_false(decide(300, 299, 0));
    assert_false(decide(1000, 999, 0));
}

static void an_old_signal_is_extrapolated(void **state) {
    (void)state;
    assert_false(decide(1200, 100, 100));
    assert_true(decide(1200, 100, 950)); /* 250 ms are left */
    assert_true(decide(1200, 0, 60000)); /* none is left, not a huge number */
}

static void the_gate_is_open_before_the_first_signal_and_without_control(void **state) {
    (void)state;
    xl_qoe_gate g;
    xl_qoe_gate_init(&g, true, 300000, 1000000);
    assert_true(xl_qoe_gate_decide(&g, 0, 0).on);
    xl_qoe_gate_init(&g, false, 300000, 1000000);
    xl_qoe q = {.cached_frames = 9000, .fps = 30};
    xl_qoe_gate_signal(&g, &q, 0);
    assert_true(xl_qoe_gate_decide(&g, 0, 0).on);
}

static void a_copy_pays_where_it_clearly_comes_first(void **state) {
    (void)state;
    assert_true(xl_reinjection_pays(200000, 100000));
    assert_false(xl_reinjection_pays(100000, 100000));
    assert_false(xl_reinjection_pays(120000, 100000));  /* within the margin */
    assert_true(xl_reinjection_pays(XL_NEVER, 900000)); /* the original's path is silent */
    assert_false(xl_reinjection_pays(XL_NEVER, XL_NEVER));
    assert_false(xl_reinjection_pays(100000, XL_NEVER));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_differ_in_when_they_copy),
        cmocka_unit_test(play_time_left_is_the_smaller_estimate),
        cmocka_unit_test(double_threshold_control_follows_algorithm_1),
        cmocka_unit_test(an_old_signal_is_extrapolated),
        cmocka_unit_test(the_gate_is_open_before_the_first_signal_and_without_control),
        cmocka_unit_test(a_copy_pays_where_it_clearly_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
