/* BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V.
 * Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016). It models the path by the largest
 * delivery rate of the last 10 round trips (BtlBw) and the smallest RTT of the last 10 s (RTprop), sends at pacing_gain
 * x BtlBw and keeps at most cwnd_gain x BtlBw x RTprop in flight:
 *
 *     Startup    gains 2.89, until BtlBw grew by less than a quarter in three round trips
 *     Drain      pacing 1 / 2.89, until no more than BtlBw x RTprop is in flight
 *     ProbeBW    pacing 1.25, 0.75 and six times 1, each for an RTprop; cwnd_gain 2
 *     ProbeRTT   4 packets in flight for 200 ms, if no RTT has been as small as RTprop for 10 s
 *
 * Loss changes neither rate nor model: for a round trip after it, no more is sent than is delivered. Samples limited by
 * the application count only if they raise BtlBw. Left out: the estimation of policers and the compensation for
 * aggregated acknowledgements, which are the Linux implementation's and not the draft's; sending in quanta, which the
 * pacer's burst replaces; ECN; and all of versions 2 and 3 (draft-ietf-ccwg-bbr), above all their bounds on what is in
 * flight after loss: like every version 1 it overruns shallow queues. The phase in which ProbeBW begins is taken from
 * the time instead of a random number, so that runs repeat. */
#include "congestion/congestion.h"
#include "minmax.h"

#include <assert.h>
#include <stddef.h>

#define HIGH_GAIN        2.885 /* 2 / ln 2: doubles the rate in a round trip */
#define PROBE_BW_CWND    2.0
#define CYCLE            8
#define BW_ROUNDS        10
#define RTPROP_WINDOW_US 10000000
#define PROBE_RTT_US     200000
#define MIN_PACKETS      4
#define FULL_PIPE_GROWTH 1.25
#define FULL_PIPE_ROUNDS 3

static const double cycle_gain[CYCLE] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};

typedef enum { STARTUP, DRAIN, PROBE_BW, PROBE_RTT } phase;

typedef struct {
    uint64_t mtu, initial_cwnd, cwnd, prior_cwnd;
    phase phase;
    double pacing_gain, cwnd_gain;
    uint64_t pacing_rate;
    uint64_t btlbw; /* bytes/s: the largest of `rates`, as of the last sample that counted */
    struct {
        uint64_t round, rate;
    } rates[BW_ROUNDS];         /* the largest of a round trip, at round % BW_ROUNDS */
    uint64_t rtprop, rtprop_at; /* UINT64_MAX = none yet */
    bool rtprop_expired, idle_restart;
    uint64_t round, round_ends; /* number of round trips; the present one ends when `delivered` reaches round_ends */
    bool round_start;
    uint64_t full_bw;
    unsigned full_rounds; /* rounds without growth */
    bool filled_pipe;
    unsigned cycle_index;
    uint64_t cycle_at;
    uint64_t probe_rtt_until; /* 0: more than four packets are still in flight */
    bool probe_rtt_round_done;
    uint64_t held_until; /* packets sent until `delivered` exceeded this were limited by ProbeRTT */
    bool in_recovery;
    uint64_t recovery_ends; /* recovery ends when `delivered` reaches this */
} bbr;

static_assert(sizeof(bbr) <= XL_CC_STATE_BYTES, "controller state too large");

static uint64_t least_window(const bbr *s) {
    return MIN_PACKETS * s->mtu;
}

/* Returns gain times the bandwidth-delay product, plus three packets whose acknowledgements are on their way. */
static uint64_t inflight(const bbr *s, double gain) {
    if (s->rtprop == UINT64_MAX || s->btlbw == 0)
        return s->initial_cwnd;
    return (uint64_t)(gain * (double)s->btlbw * (double)s->rtprop / 1e6) + 3 * s->mtu;
}

/* ---- Phases ---- */

static void enter_startup(bbr *s) {
    s->phase = STARTUP;
    s->pacing_gain = s->cwnd_gain = HIGH_GAIN;
}

static void next_cycle_phase(bbr *s, uint64_t now) {
    s->cycle_at = now;
    s->cycle_index = (s->cycle_index + 1) % CYCLE;
    s->pacing_gain = cycle_gain[s->cycle_index];
}

static void enter_probe_bw(bbr *s, uint64_t now) {
    s->phase = PROBE_BW;
    s->cwnd_gain = PROBE_BW_CWND;
    /* Any phase but the draining one, which next_cycle_phase() would enter from index 0. */
    s->cycle_index = CYCLE - 1 - (unsigned)(now / 1000 % (CYCLE - 1));
    next_cycle_phase(s, now);
}

static bool cycle_phase_is_over(const bbr *s, const xl_rate_sample *r) {
    bool full_length = r->now - s->cycle_at > s->rtprop;
    uint64_t prior_inflight = r->in_flight + r->newly_acked + r->newly_lost;
    if (s->pacing_gain > 1)
        return full_length && (r->newly_lost > 0 || prior_inflight >= inflight(s, s->pacing_gain));
    if (s->pacing_gain < 1)
        return full_length || prior_inflight <= inflight(s, 1.0);
    return full_length;
}

/* Whether the application or ProbeRTT limited what was sent, so that the sample does not show the path's capacity. */
static bool is_limited(const bbr *s, const xl_rate_sample *r) {
    return r->is_app_limited || (s->held_until > 0 && r->prior_delivered <= s->held_until);
}

static void check_full_pipe(bbr *s, const xl_rate_sample *r) {
    if (s->filled_pipe || !s->round_start || is_limited(s, r))
        return;
    if ((double)s->btlbw >= (double)s->full_bw * FULL_PIPE_GROWTH) {
        s->full_bw = s->btlbw;
        s->full_rounds = 0;
        return;
    }
    s->filled_pipe = ++s->full_rounds >= FULL_PIPE_ROUNDS;
}

static void check_drain(bbr *s, const xl_rate_sample *r) {
    if (s->phase == STARTUP && s->filled_pipe) {
        s->phase = DRAIN;
        s->pacing_gain = 1.0 / HIGH_GAIN;
        s->cwnd_gain = HIGH_GAIN;
    }
    if (s->phase == DRAIN && r->in_flight <= inflight(s, 1.0))
        enter_probe_bw(s, r->now);
}

static void hold_probe_rtt(bbr *s, const xl_rate_sample *r) {
    s->held_until = r->delivered + r->in_flight;
    if (s->probe_rtt_until == 0) {
        if (r->in_flight > least_window(s))
            return;
        s->probe_rtt_until = r->now + PROBE_RTT_US;
        s->probe_rtt_round_done = false;
        s->round_ends = r->delivered;
        return;
    }
    s->probe_rtt_round_done |= s->round_start;
    if (!s->probe_rtt_round_done || r->now < s->probe_rtt_until)
        return;
    s->rtprop_at = r->now;
    s->cwnd = xl_max(s->cwnd, s->prior_cwnd);
    if (s->filled_pipe)
        enter_probe_bw(s, r->now);
    else
        enter_startup(s);
}

static void check_probe_rtt(bbr *s, const xl_rate_sample *r) {
    if (s->phase != PROBE_RTT && s->rtprop_expired && !s->idle_restart) {
        s->phase = PROBE_RTT;
        s->pacing_gain = s->cwnd_gain = 1;
        s->prior_cwnd = s->in_recovery ? xl_max(s->cwnd, s->prior_cwnd) : s->cwnd;
        s->probe_rtt_until = 0;
    }
    if (s->phase == PROBE_RTT)
        hold_probe_rtt(s, r);
    s->idle_restart = false;
}

/* ---- The model ---- */

static void update_round(bbr *s, const xl_rate_sample *r) {
    s->round_start = r->prior_delivered >= s->round_ends;
    if (!s->round_start)
        return;
    s->round_ends = r->delivered;
    s->round++;
}

static void update_btlbw(bbr *s, const xl_rate_sample *r) {
    if (r->bytes_per_s == 0 || (is_limited(s, r) && r->bytes_per_s < s->btlbw))
        return;
    size_t at = s->round % BW_ROUNDS;
    if (s->rates[at].round != s->round) {
        s->rates[at].round = s->round;
        s->rates[at].rate = 0;
    }
    s->rates[at].rate = xl_max(s->rates[at].rate, r->bytes_per_s);
    s->btlbw = 0;
    for (size_t i = 0; i < BW_ROUNDS; i++)
        if (s->round - s->rates[i].round < BW_ROUNDS)
            s->btlbw = xl_max(s->btlbw, s->rates[i].rate);
}

static void update_rtprop(bbr *s, const xl_rate_sample *r) {
    s->rtprop_expired = s->rtprop != UINT64_MAX && r->now - s->rtprop_at > RTPROP_WINDOW_US;
    if (r->rtt_us > 0 && (r->rtt_us <= s->rtprop || s->rtprop_expired)) {
        s->rtprop = r->rtt_us;
        s->rtprop_at = r->now;
    }
}

/* ---- Rate and window ---- */

static void set_pacing_rate(bbr *s, double gain) {
    double bandwidth = (double)s->btlbw;
    if (s->btlbw == 0 && s->rtprop != UINT64_MAX)
        bandwidth = (double)s->initial_cwnd * 1e6 / (double)xl_max(s->rtprop, 1);
    uint64_t rate = (uint64_t)(gain * bandwidth);
    if (s->filled_pipe || rate > s->pacing_rate)
        s->pacing_rate = rate;
}

/* Whether packet conservation limits the window: for a round trip after a loss, no more is sent than is delivered. */
static bool conserves_packets(bbr *s, const xl_rate_sample *r) {
    if (s->in_recovery && r->prior_delivered >= s->recovery_ends) {
        s->in_recovery = false;
        s->cwnd = xl_max(s->cwnd, s->prior_cwnd);
    }
    if (!s->in_recovery && r->newly_lost > 0) {
        if (s->phase != PROBE_RTT)
            s->prior_cwnd = s->cwnd;
        s->in_recovery = true;
        s->recovery_ends = r->delivered;
        s->cwnd = r->in_flight + xl_max(r->newly_acked, s->mtu);
    } else if (s->in_recovery) {
        s->cwnd = xl_max(s->cwnd - xl_min(r->newly_lost, s->cwnd), r->in_flight + r->newly_acked);
    }
    return s->in_recovery;
}

static void set_cwnd(bbr *s, const xl_rate_sample *r) {
    uint64_t target = inflight(s, s->cwnd_gain);
    if (!conserves_packets(s, r)) {
        if (s->filled_pipe)
            s->cwnd = xl_min(s->cwnd + r->newly_acked, target);
        else if (s->cwnd < target || r->delivered < s->initial_cwnd)
            s->cwnd += r->newly_acked;
    }
    s->cwnd = xl_max(s->cwnd, least_window(s));
    if (s->phase == PROBE_RTT)
        s->cwnd = xl_min(s->cwnd, least_window(s));
}

/* ---- The table ---- */

static void init(void *state, uint64_t mtu_bytes, uint64_t now) {
    bbr *s = state;
    *s = (bbr){.mtu = mtu_bytes, .rtprop = UINT64_MAX, .rtprop_at = now};
    s->initial_cwnd = s->cwnd = xl_cc_initial_window(mtu_bytes);
    enter_startup(s);
}

static void set_mtu(void *state, uint64_t mtu_bytes) {
    bbr *s = state;
    uint64_t old_mtu = s->mtu;
    s->mtu = mtu_bytes;
    s->initial_cwnd = xl_cc_initial_window(mtu_bytes);
    if (s->phase == STARTUP)
        s->cwnd = (uint64_t)xl_cc_window_for_mtu((double)s->cwnd, old_mtu, mtu_bytes);
    s->cwnd = xl_max(s->cwnd, least_window(s));
}

static void on_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now) {
    (void)now;
    bbr *s = state;
    if (bytes_in_flight > bytes)
        return;
    s->idle_restart = true;
    if (s->phase == PROBE_BW)
        set_pacing_rate(s, 1.0);
}

/* Everything is done once per ACK frame, in on_rate_sample(). */
static void on_ack(void *state, const xl_cc_ack *ack) {
    (void)state, (void)ack;
}

static void on_loss(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)state, (void)sent_time, (void)bytes, (void)now;
}

/* Version 1 has no answer to CE. */
static void on_congestion(void *state, uint64_t sent_time, uint64_t now) {
    (void)state;
    (void)sent_time;
    (void)now;
}

static void on_rate_sample(void *state, const xl_rate_sample *r) {
    bbr *s = state;
    update_round(s, r);
    update_btlbw(s, r);
    if (s->phase == PROBE_BW && cycle_phase_is_over(s, r))
        next_cycle_phase(s, r->now);
    check_full_pipe(s, r);
    check_drain(s, r);
    update_rtprop(s, r);
    check_probe_rtt(s, r);
    set_pacing_rate(s, s->pacing_gain);
    set_cwnd(s, r);
}

/* The path may be another one when it answers again, but the model is the best guess: the window grows back to its
 * target as fast as data is delivered. */
static void on_persistent_congestion(void *state, uint64_t now) {
    (void)now;
    bbr *s = state;
    s->cwnd = least_window(s);
    s->in_recovery = false;
}

static uint64_t window(const void *state) {
    return ((const bbr *)state)->cwnd;
}

static uint64_t ssthresh(const void *state) {
    (void)state;
    return UINT64_MAX;
}

static uint64_t pacing_rate(const void *state) {
    return ((const bbr *)state)->pacing_rate;
}

static const char *phase_name(const void *state) {
    static const char *const names[] = {"Startup", "Drain", "ProbeBW", "ProbeRTT"};
    return names[((const bbr *)state)->phase];
}

const xl_cc_ops xl_cc_bbr = {
    .name = "bbr",
    .init = init,
    .set_mtu = set_mtu,
    .on_sent = on_sent,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_congestion = on_congestion,
    .on_rate_sample = on_rate_sample,
    .on_persistent_congestion = on_persistent_congestion,
    .window = window,
    .ssthresh = ssthresh,
    .pacing_rate = pacing_rate,
    .phase = phase_name,
};
