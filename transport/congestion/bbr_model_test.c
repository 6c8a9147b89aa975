/* BBR, one delivery-rate sample at a time, compared with the draft. bbr_test.c runs it on a link. */
#include "tests/unit.h"
#include "congestion/congestion.h"

#include <stdalign.h>
#include <string.h>

extern const xl_cc_ops xl_cc_bbr;

#define MSS     1000
#define RTT     40000
#define RATE    1000000
#define BDP     (RATE / 1000 * RTT / 1000)
#define MUCH    1000000 /* bytes in flight: more than any gain asks for */
#define SECONDS UINT64_C(1000000)

typedef struct {
    alignas(16) uint8_t state[XL_CC_STATE_BYTES];
    uint64_t now, delivered;
} flow;

static void begin(flow *f, uint64_t now) {
    *f = (flow){.now = now};
    xl_cc_bbr.init(f->state, MSS, now);
}

/* Takes an ACK after `later` microseconds. Its newest packet left when the previous ACK came, so that a round trip
 * begins. */
static void take(flow *f, uint64_t later, xl_rate_sample s) {
    f->now += later;
    s.now = f->now;
    s.prior_delivered = f->delivered;
    s.delivered = f->delivered += s.newly_acked;
    xl_cc_bbr.on_rate_sample(f->state, &s);
}

/* Takes an ACK of a packet that left earlier, so that no round trip begins. */
static void take_within(flow *f, uint64_t later, xl_rate_sample s) {
    f->now += later;
    s.now = f->now;
    s.prior_delivered = 1;
    s.delivered = f->delivered += s.newly_acked;
    xl_cc_bbr.on_rate_sample(f->state, &s);
}

static xl_rate_sample at_rate(uint64_t rate, uint64_t in_flight) {
    return (xl_rate_sample){.bytes_per_s = rate, .newly_acked = 100 * MSS, .in_flight = in_flight, .rtt_us = RTT};
}

static bool is_in(const flow *f, const char *phase) {
    return strcmp(xl_cc_bbr.phase(f->state), phase) == 0;
}

static uint64_t window(const flow *f) {
    return xl_cc_bbr.window(f->state);
}

static uint64_t pace(const flow *f) {
    return xl_cc_bbr.pacing_rate(f->state);
}

static void to_drain(flow *f) {
    for (int i = 0; i < 4; i++)
        take(f, RTT, at_rate(RATE, MUCH));
    assert_true(is_in(f, "Drain"));
}

/* Enters ProbeBW, `phases` (0 to 6) phases before the one with the gain of 1.25. */
static void to_probe_bw(flow *f, uint64_t phases) {
    begin(f, 7000 * SECONDS + phases * 1000 - 5 * RTT);
    to_drain(f);
    take(f, RTT, at_rate(RATE, BDP));
    assert_true(is_in(f, "ProbeBW"));
}

TEST(startup_paces_by_the_window_until_a_rate_is_known) {
    flow f;
    begin(&f, 0);
    assert_int_equal(0, pace(&f));
    take(&f, RTT, (xl_rate_sample){.newly_acked = MSS, .rtt_us = RTT});
    assert_int_equal(721250, pace(&f)); /* 2.885 times ten packets a round trip, rounded down */
    assert_int_equal(11 * MSS, window(&f));
    uint64_t before = pace(&f);
    take(&f, RTT, at_rate(RATE / 10, 0));
    assert_int_equal(before, pace(&f)); /* it does not get slower in Startup */
    take(&f, RTT, at_rate(RATE, 0));
    assert_int_equal(2885 * (RATE / 1000), pace(&f));
}

TEST(after_a_collapse_without_a_rate_the_window_grows_back_to_the_initial_one) {
    flow f;
    begin(&f, 0);
    take(&f, RTT, (xl_rate_sample){.newly_acked = 20 * MSS, .rtt_us = RTT});
    xl_cc_bbr.on_persistent_congestion(f.state, f.now);
    assert_int_equal(4 * MSS, window(&f));
    take(&f, RTT, (xl_rate_sample){.newly_acked = 2 * MSS, .rtt_us = RTT});
    assert_int_equal(6 * MSS, window(&f));
}

TEST(the_pipe_is_full_after_three_rounds_that_grew_by_less_than_a_quarter) {
    flow f;
    begin(&f, 0);
    uint64_t rate = 1024000; /* by a quarter six times, in whole numbers */
    for (int i = 0; i < 6; i++, rate += rate / 4)
        take(&f, RTT, at_rate(rate, MUCH));
    uint64_t flat = rate - 1; /* a byte less than a quarter more than the last */
    take(&f, RTT, at_rate(flat, MUCH));
    xl_rate_sample limited = at_rate(flat, MUCH);
    limited.is_app_limited = true;
    for (int i = 0; i < 5; i++) {
        take(&f, RTT, limited);                  /* application-limited: not counted */
        take_within(&f, 1, at_rate(flat, MUCH)); /* a second sample of a round trip is not counted either */
    }
    take(&f, RTT, at_rate(flat, MUCH));
    assert_true(is_in(&f, "Startup"));
    take(&f, RTT, at_rate(flat, MUCH));
    assert_true(is_in(&f, "Drain"));
}

TEST(drain_paces_slowly_until_no_more_than_the_product_is_in_flight) {
    flow f;
    begin(&f, 0);
    to_drain(&f);
    assert_int_equal((uint64_t)(RATE / 2.885), pace(&f));
    take(&f, RTT, at_rate(RATE, BDP + 3 * MSS + 1));
    assert_true(is_in(&f, "Drain"));
    take(&f, RTT, at_rate(RATE, BDP + 3 * MSS));
    assert_true(is_in(&f, "ProbeBW"));
    assert_int_equal(2 * BDP + 3 * MSS, window(&f));
}

TEST(probing_begins_in_any_phase_but_the_draining_one) {
    for (uint64_t phases = 0; phases < 7; phases++) {
        flow f;
        to_probe_bw(&f, phases);
        for (uint64_t i = 0; i < phases; i++) {
            assert_int_equal(RATE, pace(&f));
            take(&f, RTT, at_rate(RATE, BDP)); /* not longer than RTprop */
            assert_int_equal(RATE, pace(&f));
            take(&f, 1, at_rate(RATE, BDP));
        }
        assert_int_equal(RATE * 5 / 4, pace(&f));
    }
}

TEST(a_probe_lasts_until_it_fills_the_pipe_or_loses) {
    const uint64_t full = BDP * 5 / 4 + 3 * MSS;
    for (int lost = 0; lost < 2; lost++) {
        flow f;
        to_probe_bw(&f, 0);
        xl_rate_sample s = at_rate(RATE, full - 101 * MSS + 999);
        take(&f, 5 * RTT, s);
        assert_int_equal(RATE * 5 / 4, pace(&f)); /* a byte is missing */
        s.newly_lost = lost ? 1 : 0;
        s.in_flight += lost ? 0 : 1;
        take(&f, 1, s);
        assert_int_equal(RATE * 3 / 4, pace(&f));
    }
}

TEST(the_phase_after_a_probe_ends_as_soon_as_its_queue_is_gone) {
    const uint64_t in_flight = 4 * MSS;
    flow f;
    to_probe_bw(&f, 0);
    take(&f, RTT + 1, at_rate(RATE, MUCH));
    assert_int_equal(RATE * 3 / 4, pace(&f));
    xl_rate_sample s = {.bytes_per_s = RATE, .rtt_us = RTT, .in_flight = in_flight, .newly_acked = BDP - 2 * MSS};
    s.newly_lost = MSS + 1;
    take(&f, 1, s); /* what is acknowledged and lost now was in flight before */
    assert_int_equal(RATE * 3 / 4, pace(&f));
    s.newly_lost = MSS;
    take(&f, 1, s);
    assert_int_equal(RATE, pace(&f));
    to_probe_bw(&f, 0);
    take(&f, RTT + 1, at_rate(RATE, MUCH));
    take(&f, RTT, at_rate(RATE, MUCH));
    assert_int_equal(RATE * 3 / 4, pace(&f));
    take(&f, 1, at_rate(RATE, MUCH)); /* RTprop is over */
    assert_int_equal(RATE, pace(&f));
}

TEST(the_rate_is_the_largest_of_ten_round_trips) {
    flow f;
    to_probe_bw(&f, 3);
    for (int round = 1; round < 10; round++) {
        take(&f, RTT, at_rate(RATE / 2, BDP));
        assert_int_equal(2 * BDP + 3 * MSS, window(&f));
    }
    take(&f, RTT, at_rate(RATE / 2, BDP));
    assert_int_equal(BDP + 3 * MSS, window(&f));
    take(&f, RTT, at_rate(RATE * 3 / 4, BDP));
    take_within(&f, 1, at_rate(RATE / 2, BDP)); /* the largest rate of the round trip counts */
    assert_int_equal(2 * (BDP * 3 / 4) + 3 * MSS, window(&f));
}

static const xl_rate_sample longer = {.bytes_per_s = RATE, .newly_acked = MSS, .in_flight = BDP, .rtt_us = RTT + 1};

/* Enters ProbeRTT by ten seconds without an RTT as small as RTprop. */
static void to_probe_rtt(flow *f) {
    to_probe_bw(f, 3);
    take(f, 10 * SECONDS, longer);
    assert_true(is_in(f, "ProbeBW"));
    take(f, 1, longer);
    assert_true(is_in(f, "ProbeRTT"));
    assert_int_equal(4 * MSS, window(f));
}

TEST(probe_rtt_lasts_200_ms_and_a_round_trip_with_four_packets_in_flight) {
    xl_rate_sample s = longer;
    flow f;
    to_probe_rtt(&f);
    s.in_flight = 4 * MSS + 1;
    take(&f, 300000, s); /* the 200 ms have not begun yet */
    s.in_flight = 4 * MSS;
    take(&f, RTT, s);
    take(&f, 199999, s);
    assert_true(is_in(&f, "ProbeRTT"));
    take_within(&f, 1, s);
    assert_true(is_in(&f, "ProbeBW"));
    assert_int_equal(2 * BDP + 2 + 3 * MSS, window(&f)); /* as before, by the present RTprop */

    to_probe_rtt(&f);
    take(&f, RTT, s);
    take_within(&f, 500000, s);
    assert_true(is_in(&f, "ProbeRTT")); /* no round trip has begun since */
    take(&f, 1, s);
    assert_true(is_in(&f, "ProbeBW"));
}

TEST(what_is_sent_by_four_packets_a_round_trip_says_nothing_of_the_rate) {
    xl_rate_sample s = longer;
    s.in_flight = 4 * MSS;
    s.bytes_per_s = RATE / 10;
    flow f;
    to_probe_rtt(&f);
    take(&f, RTT, s);
    for (int i = 0; i < 12; i++)
        take(&f, 15000, s);
    take(&f, 200000, s);
    assert_true(is_in(&f, "ProbeBW"));
    assert_int_equal(2 * BDP + 2 + 3 * MSS, window(&f));
}

TEST(a_probe_of_the_round_trip_in_startup_does_not_fill_the_pipe) {
    xl_rate_sample s = longer;
    s.is_app_limited = true;
    flow f;
    begin(&f, 0);
    take(&f, RTT, at_rate(RATE, BDP));
    take(&f, 11 * SECONDS, s);
    take(&f, 1, s);
    assert_true(is_in(&f, "ProbeRTT"));
    s = (xl_rate_sample){.bytes_per_s = RATE / 10, .newly_acked = MSS, .in_flight = 4 * MSS, .rtt_us = RTT};
    for (int round = 0; is_in(&f, "ProbeRTT"); round++, assert_true(round < 10))
        take(&f, RTT, s);
    assert_true(is_in(&f, "Startup"));
    take(&f, RTT, s); /* was sent by four packets in flight */
    assert_true(is_in(&f, "Startup"));
}

TEST(a_path_that_was_idle_needs_no_probe_of_its_round_trip) {
    flow f;
    to_probe_bw(&f, 3);
    xl_cc_bbr.on_sent(f.state, MSS, MSS, f.now + 11 * SECONDS);
    take(&f, 11 * SECONDS, longer);
    assert_true(is_in(&f, "ProbeBW"));
    to_probe_bw(&f, 3);
    xl_cc_bbr.on_sent(f.state, MSS, 2 * MSS, f.now + 11 * SECONDS); /* not idle: another packet was in flight */
    take(&f, 11 * SECONDS, longer);
    assert_true(is_in(&f, "ProbeRTT"));
}

TEST(after_idleness_it_paces_at_the_rate_of_the_path) {
    flow f;
    to_probe_bw(&f, 0);
    assert_int_equal(RATE * 5 / 4, pace(&f));
    xl_cc_bbr.on_sent(f.state, MSS, 2 * MSS, f.now);
    assert_int_equal(RATE * 5 / 4, pace(&f));
    xl_cc_bbr.on_sent(f.state, MSS, MSS, f.now);
    assert_int_equal(RATE, pace(&f));
    begin(&f, 0);
    take(&f, RTT, at_rate(RATE, 0)); /* Startup goes on as before */
    xl_cc_bbr.on_sent(f.state, MSS, MSS, f.now);
    assert_int_equal(2885 * (RATE / 1000), pace(&f));
}

TEST(after_a_loss_as_much_is_sent_as_is_delivered_for_a_round_trip) {
    flow f;
    to_probe_bw(&f, 3);
    xl_rate_sample s = {.bytes_per_s = RATE, .rtt_us = RTT, .in_flight = 30 * MSS, .newly_acked = 500};
    s.newly_lost = MSS;
    take(&f, 1000, s);
    assert_int_equal(31 * MSS, window(&f)); /* at least one packet more */
    s.newly_lost = 0;
    s.newly_acked = 2 * MSS;
    take_within(&f, 1000, s);
    assert_int_equal(32 * MSS, window(&f));
    s.in_flight = 29 * MSS;
    take_within(&f, 1000, s);
    assert_int_equal(32 * MSS, window(&f));
    s.in_flight = 17 * MSS; /* the bytes lost now are not given back as room */
    s.newly_lost = 10 * MSS;
    take_within(&f, 1000, s);
    assert_int_equal(22 * MSS, window(&f));
    s.newly_lost = 100 * MSS; /* more than the window */
    s.in_flight = 3 * MSS;
    take_within(&f, 1000, s);
    assert_int_equal(5 * MSS, window(&f));
    s.newly_lost = 0;
    take(&f, 1000, s);
    assert_int_equal(2 * BDP + 3 * MSS, window(&f));
}

TEST(a_loss_while_the_window_is_held_down_does_not_make_it_the_one_to_return_to) {
    xl_rate_sample s = longer;
    s.in_flight = 4 * MSS;
    flow f;
    to_probe_rtt(&f);
    take(&f, RTT, s);
    s.newly_lost = MSS;
    take(&f, RTT, s);
    s.newly_lost = 0;
    take(&f, 200000, s);
    assert_true(is_in(&f, "ProbeBW"));
    assert_int_equal(2 * BDP + 2 + 3 * MSS, window(&f));
}

TEST_MAIN(NULL, NULL)
