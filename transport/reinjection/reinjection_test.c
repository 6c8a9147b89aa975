
#include "tests/unit.h"
#include "reinjection/gate.h"
#include "reinjection/reinjection.h"

static xl_reinjection_scope scope(const char *mode, bool stream_flushed, bool frame_flushed, bool unsent) {
    xl_reinjection_view v = {.stream_flushed = stream_flushed,
                             .has_mark = true,
                             .frame_flushed = frame_flushed,
                             .connection_has_unsent = unsent};
    return xl_reinjection_find(mode)->scope(&v);
}

TEST(modes_differ_in_when_they_copy) {
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

TEST(play_time_left_is_the_smaller_estimate) {
    assert_int_equal(1000000, xl_qoe_play_time_left(&(xl_qoe){500000, 30, 4000000, 30})); /* both say 1 s */
    assert_int_equal(500000, xl_qoe_play_time_left(&(xl_qoe){500000, 15, 4000000, 30}));  /* frames say less */
    assert_int_equal(250000, xl_qoe_play_time_left(&(xl_qoe){125000, 90, 4000000, 30}));  /* bytes say less */
    assert_int_equal(3000000, xl_qoe_play_time_left(&(xl_qoe){0, 90, 0, 30}));            /* no bit rate */
    assert_int_equal(250000, xl_qoe_play_time_left(&(xl_qoe){125000, 0, 4000000, 0}));    /* no frame rate */
    assert_true(xl_qoe_play_time_left(&(xl_qoe){5, 5, 0, 0}) == UINT64_MAX);
    assert_int_equal(1500000, xl_qoe_play_time_left(&(xl_qoe){.cached_frames = 3, .fps = 2}));
    assert_int_equal(3000000, xl_qoe_play_time_left(&(xl_qoe){.cached_frames = 3, .fps = 1}));
    assert_int_equal(8000000, xl_qoe_play_time_left(&(xl_qoe){.cached_bytes = 1, .bps = 1}));
}

/* For any claim of a peer, no overflow makes a full buffer an empty one. Only UINT64_MAX means "no estimate". */
TEST(absurd_claims_are_a_very_long_time) {
    const uint64_t longest = UINT64_MAX - 1, most_seconds = UINT64_MAX / 1000000;
    assert_int_equal(longest, xl_qoe_play_time_left(&(xl_qoe){UINT64_MAX, UINT64_MAX, 1, 1}));
    assert_int_equal(longest, xl_qoe_play_time_left(&(xl_qoe){.cached_frames = most_seconds - 1, .fps = 1}));
    assert_int_equal((most_seconds - 2) * 1000000,
                     xl_qoe_play_time_left(&(xl_qoe){.cached_frames = most_seconds - 2, .fps = 1}));
    const uint64_t rate = UINT64_C(1) << 60; /* 8 bits a byte: 2^61 bytes are 2^64 bits */
    assert_in_range(xl_qoe_play_time_left(&(xl_qoe){.cached_bytes = 2 * rate, .bps = rate}), 15999999, 16000000);
    assert_int_equal(15000000, xl_qoe_play_time_left(&(xl_qoe){.cached_bytes = 15 * (rate / 8), .bps = rate}));
}

static xl_qoe_gate gate(bool enabled, uint64_t t_th1_us, uint64_t t_th2_us) {
    return (xl_qoe_gate){.enabled = enabled, .extrapolate = true, .t_th1_us = t_th1_us, .t_th2_us = t_th2_us};
}

/* Algorithm 1 with T_th1 = 300 ms and T_th2 = 1000 ms. */
static bool decide(uint64_t play_time_ms, uint64_t deliver_ms, uint64_t elapsed_ms) {
    xl_qoe_gate g = gate(true, 300000, 1000000);
    xl_qoe q = {.cached_frames = play_time_ms, .fps = 1000};
    xl_qoe_gate_signal(&g, &q, 5000000, 5000000);
    return xl_qoe_gate_decide(&g, deliver_ms * 1000, 5000000 + elapsed_ms * 1000).on;
}

TEST(double_threshold_control_follows_algorithm_1) {
    static const struct {
        uint64_t t_th1_ms, t_th2_ms, left_ms, deliver_ms;
        bool on;
        const char *why;
    } rows[] = {
        /* Line 2: above T_th2, however slow the delivery; T_th2 itself is not above. */
        {300, 1000, 1001, 5000, false, "above T_th2"},
        {300, 1000, 1000, 5000, true, "below deliverTime_max"},
        {300, 1000, 1000, 1000, false, "above deliverTime_max"},
        {300, 1000, 1000, 0, false, "above deliverTime_max"},
        /* Line 4: below T_th1, however fast the delivery; T_th1 itself is not below. */
        {300, 1000, 299, 0, true, "below T_th1"},
        {300, 1000, 0, 0, true, "below T_th1"},
        {300, 1000, 300, 0, false, "above deliverTime_max"},
        {300, 1000, 300, 300, false, "above deliverTime_max"},
        {300, 1000, 300, 301, true, "below deliverTime_max"},
        /* Between the thresholds: Δt against deliverTime_max; equal is in time. */
        {300, 1000, 600, 601, true, "below deliverTime_max"},
        {300, 1000, 600, 600, false, "above deliverTime_max"},
        {300, 1000, 600, 599, false, "above deliverTime_max"},
        /* No packet is unacknowledged on any path: deliverTime_max is 0. */
        {300, 1000, 301, 0, false, "above deliverTime_max"},
        /* One threshold: only Δt equal to it is between. */
        {500, 500, 501, 9999, false, "above T_th2"},
        {500, 500, 499, 0, true, "below T_th1"},
        {500, 500, 500, 501, true, "below deliverTime_max"},
        {500, 500, 500, 500, false, "above deliverTime_max"},
        /* Both zero does not disable the gate: with an empty buffer nothing is above 0 or below it. */
        {0, 0, 0, 1, true, "below deliverTime_max"},
        {0, 0, 0, 0, false, "above deliverTime_max"},
        {0, 0, 1, 9999, false, "above T_th2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        xl_qoe_gate g = gate(true, rows[i].t_th1_ms * 1000, rows[i].t_th2_ms * 1000);
        xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = rows[i].left_ms, .fps = 1000}, 5000000, 5000000);
        xl_qoe_decision d = xl_qoe_gate_decide(&g, rows[i].deliver_ms * 1000, 5000000);
        assert_int_equal(rows[i].on, d.on);
        assert_string_equal(rows[i].why, d.why);
        assert_int_equal(rows[i].left_ms * 1000, d.play_time_left_us);
    }
}

TEST(a_signal_overtaken_by_a_newer_one_is_ignored) {
    xl_qoe_gate g = gate(true, 300000, 1000000);
    assert_true(xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 200, .fps = 1000}, 5000000, 5010000));
    assert_false(xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 9000, .fps = 1000}, 2000000, 5020000));
    assert_int_equal(200, g.signal.cached_frames);
    assert_true(xl_qoe_gate_decide(&g, 0, 5020000).on);
    assert_true(xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 9000, .fps = 1000}, 5000000, 5020000));
    assert_false(xl_qoe_gate_decide(&g, 0, 5020000).on);
}

TEST(an_old_signal_is_extrapolated) {
    assert_false(decide(1200, 100, 100));
    assert_true(decide(1200, 100, 950)); /* 250 ms are left */
    assert_true(decide(1200, 0, 60000)); /* none is left, not a huge number */
}

TEST(without_extrapolation_a_signal_counts_as_it_came) {
    xl_qoe_gate g = gate(true, 300000, 1000000);
    g.extrapolate = false;
    xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 1200, .fps = 1000}, 5000000, 5000000);
    assert_false(xl_qoe_gate_decide(&g, 0, 65000000).on);
    assert_int_equal(1200000, xl_qoe_gate_decide(&g, 0, 65000000).play_time_left_us);
}

static void expect_open(const xl_qoe_gate *g, const char *why) {
    xl_qoe_decision d = xl_qoe_gate_decide(g, 0, 0);
    assert_true(d.on);
    assert_true(d.play_time_left_us == UINT64_MAX);
    assert_string_equal(why, d.why);
}

TEST(the_gate_is_open_where_play_time_left_is_unknown) {
    xl_qoe_gate g = gate(true, 300000, 1000000);
    expect_open(&g, "no signal yet");
    xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 9000, .cached_bytes = 9000}, 0, 0);
    expect_open(&g, "signal without rates");
    g = gate(false, 300000, 1000000);
    xl_qoe_gate_signal(&g, &(xl_qoe){.cached_frames = 9000, .fps = 30}, 0, 0);
    expect_open(&g, "no control");
}

TEST(a_copy_pays_where_it_clearly_comes_first) {
    assert_true(xl_reinjection_pays(200000, 100000, 0));
    assert_false(xl_reinjection_pays(100000, 100000, 0));
    assert_false(xl_reinjection_pays(125000, 100000, 0)); /* within the margin of a quarter */
    assert_true(xl_reinjection_pays(125001, 100000, 0));
    assert_false(xl_reinjection_pays(0, 100000, 0));
    assert_true(xl_reinjection_pays(XL_NEVER, 900000, 0)); /* the original's path is silent */
    assert_false(xl_reinjection_pays(XL_NEVER, XL_NEVER, 0));
    assert_false(xl_reinjection_pays(600000, 100000, 500000)); /* a rescue has to gain more */
    assert_true(xl_reinjection_pays(625001, 100000, 500000));
    assert_true(xl_reinjection_pays(XL_NEVER, 900000, 500000));
    assert_false(xl_reinjection_pays(100000, XL_NEVER, 0));
}

TEST_MAIN(NULL, NULL)
