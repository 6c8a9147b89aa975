/* CUBIC, RFC 9438, in bytes; HyStart++ in the first slow start. Doubles are deterministic here: no fast-math, and
 * -std=c17 keeps the compiler from contracting expressions.
 *
 * RFC 9438 treats every loss as congestion. Its window is then sqrt(1.5 / p) packets at a loss rate p, however fast the
 * link is: with 3 % random loss 7 packets, with an RTT of 100 ms 100 kB/s. `cubic-tolerant` deviates: a loss counts
 * only if
 *
 *     RTT > min RTT + eta   or   smoothed loss rate > 10 %
 *
 * where RTT is the smaller of the last two samples and eta = min RTT / 8, at least 4 and at most 16 ms, as in
 * HyStart++. The first condition shows a standing queue; the second covers queues too short to be visible. `cubic`
 * counts every loss. */
#include "congestion/congestion.h"
#include "congestion/hystart.h"

#include <assert.h>
#include <math.h>

#define C                0.4 /* segments per second cubed */
#define BETA             0.7
#define ALPHA            (3.0 * (1.0 - BETA) / (1.0 + BETA)) /* section 4.3 */
#define MAX_TARGET_RATIO 1.5
#define LOSS_RATE_MAX    0.1
#define LOSS_RATE_GAIN   (1.0 / 64) /* a packet's weight in the smoothed loss rate */

/* State that a congestion event changes and that a spurious event restores. */
typedef struct {
    double cwnd;
    double w_max;      /* window before the last reduction; 0 = unknown */
    double w_est;      /* the window that Reno would have */
    double cwnd_prior; /* cwnd at the last reduction */
    double k_s;        /* seconds from the epoch to w_max */
    uint64_t ssthresh;
    uint64_t elapsed_us; /* age of the epoch, without application-limited times */
    bool in_epoch;       /* a congestion avoidance stage has begun */
    bool has_event;
    uint64_t recovery_start; /* packets sent until then belong to the last congestion event */
} curve;

typedef struct {
    uint64_t mtu;
    curve c;
    curve undo;        /* state before the last event */
    uint64_t lost;     /* packets lost in the last event */
    uint64_t spurious; /* of these, packets that arrived after all */
    uint64_t clock_at; /* elapsed_us is counted up to here */
    bool collapsed;    /* persistent congestion since the event: growth does not wait for the end of recovery */
    xl_hystart hystart;

    bool counts_every_loss;     /* the controller is `cubic` */
    uint64_t rtt_us[2];         /* the last two samples, 0 = none yet */
    uint64_t min_rtt_us;        /* 0 = none yet */
    double loss_rate;           /* share of the packets that were lost, smoothed */
    bool has_uncounted;         /* a loss was not counted */
    uint64_t uncounted_sent_at; /* when its packet was sent; of several losses the last */
} cubic;

static_assert(sizeof(cubic) <= XL_CC_STATE_BYTES, "controller state too large");

static double at_least_minimum(const cubic *s, double window) {
    return fmax(window, (double)xl_cc_minimum_window(s->mtu));
}

static void init_tolerant(void *state, uint64_t mtu_bytes, uint64_t now) {
    cubic *s = state;
    *s = (cubic){.mtu = mtu_bytes, .clock_at = now};
    s->c.cwnd = (double)xl_cc_initial_window(mtu_bytes);
    s->c.ssthresh = UINT64_MAX;
    xl_hystart_init(&s->hystart);
}

static void init_rfc9438(void *state, uint64_t mtu_bytes, uint64_t now) {
    init_tolerant(state, mtu_bytes, now);
    ((cubic *)state)->counts_every_loss = true;
}

/* The curve is in units of packets, so a new packet size begins a new stage of congestion avoidance. */
static void set_mtu(void *state, uint64_t mtu_bytes) {
    cubic *s = state;
    bool is_first = s->c.ssthresh == UINT64_MAX;
    double window = is_first ? xl_cc_window_for_mtu(s->c.cwnd, s->mtu, mtu_bytes) : s->c.cwnd;
    s->mtu = mtu_bytes;
    s->c.cwnd = at_least_minimum(s, window);
    s->c.in_epoch = false;
}

/* The curve must not run ahead while nothing is sent (section 5.8). */
static void on_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now) {
    cubic *s = state;
    if (bytes_in_flight <= bytes)
        s->clock_at = now;
}

static void advance_clock(cubic *s, uint64_t now) {
    if (s->c.in_epoch && now > s->clock_at)
        s->c.elapsed_us += now - s->clock_at;
    s->clock_at = now;
}

static double seconds(uint64_t us) {
    return (double)us / 1e6;
}

/* Section 4.2. Without a window to return to (after HyStart++, section 4.10, or persistent congestion, section 4.8)
 * the curve begins at its plateau. */
static void begin_epoch(cubic *s) {
    curve *c = &s->c;
    if (c->w_max < c->cwnd)
        c->w_max = c->cwnd;
    c->k_s = cbrt((c->w_max - c->cwnd) / (C * (double)s->mtu));
    c->w_est = c->cwnd;
    c->elapsed_us = 0;
    c->in_epoch = true;
}

static double w_cubic(const cubic *s, uint64_t t_us) {
    double d = seconds(t_us) - s->c.k_s;
    return C * d * d * d * (double)s->mtu + s->c.w_max;
}

static void avoid_congestion(cubic *s, const xl_cc_ack *ack) {
    curve *c = &s->c;
    if (!c->in_epoch)
        begin_epoch(s);
    double share = (double)ack->bytes / c->cwnd; /* share of a round trip */
    double alpha = c->w_est >= c->cwnd_prior ? 1.0 : ALPHA;
    c->w_est += alpha * share * (double)s->mtu;
    if (w_cubic(s, c->elapsed_us) < c->w_est) { /* section 4.3, Reno-friendly region */
        c->cwnd = fmax(c->cwnd, c->w_est);
        return;
    }
    double target = w_cubic(s, c->elapsed_us + ack->srtt_us);
    target = fmin(fmax(target, c->cwnd), MAX_TARGET_RATIO * c->cwnd);
    c->cwnd += (target - c->cwnd) * share;
}

/* Returns the RTT sample if this packet gave it, else 0. So an ACK of many packets counts as one sample, and an ACK
 * without a sample (it came on another path) as none. */
static uint64_t fresh_sample(const xl_cc_ack *ack) {
    return ack->now - ack->sent_time == ack->latest_rtt_us ? ack->latest_rtt_us : 0;
}

static void slow_start(cubic *s, const xl_cc_ack *ack) {
    bool is_first = s->c.ssthresh == UINT64_MAX;
    if (is_first && xl_hystart_on_ack(&s->hystart, ack->now, ack->sent_time, fresh_sample(ack))) {
        s->c.ssthresh = (uint64_t)s->c.cwnd;
        return;
    }
    if (!ack->app_limited)
        s->c.cwnd += (double)(is_first ? xl_hystart_growth(&s->hystart, ack->bytes) : ack->bytes);
}

static bool is_of_last_event(const cubic *s, uint64_t sent_time) {
    return s->c.has_event && sent_time <= s->c.recovery_start;
}

static void watch_path(cubic *s, const xl_cc_ack *ack) {
    uint64_t sample = fresh_sample(ack);
    s->loss_rate -= s->loss_rate * LOSS_RATE_GAIN;
    s->min_rtt_us = ack->min_rtt_us;
    if (sample == 0)
        return;
    s->rtt_us[1] = s->rtt_us[0];
    s->rtt_us[0] = sample;
}

/* Whether the smaller of the last two samples shows a queue; one sample alone may include the peer's delayed
 * acknowledgement. True without a sample. */
static bool has_queue(const cubic *s) {
    uint64_t rtt = s->rtt_us[1] && s->rtt_us[1] < s->rtt_us[0] ? s->rtt_us[1] : s->rtt_us[0];
    return rtt == 0 || rtt > s->min_rtt_us + xl_hystart_threshold(s->min_rtt_us);
}

static bool is_congestion(const cubic *s) {
    return s->counts_every_loss || has_queue(s) || s->loss_rate > LOSS_RATE_MAX;
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    cubic *s = state;
    watch_path(s, ack);
    if (ack->app_limited)
        s->clock_at = ack->now;
    advance_clock(s, ack->now);
    if (is_of_last_event(s, ack->sent_time) && !s->collapsed)
        return;
    if (s->c.cwnd < (double)s->c.ssthresh)
        slow_start(s, ack);
    else if (!ack->app_limited)
        avoid_congestion(s, ack);
}

static void begin_event(cubic *s, uint64_t now) {
    curve *c = &s->c;
    s->undo = *c;
    s->spurious = 0;
    s->collapsed = false;
    /* Fast convergence, section 4.7: below the last maximum, leave capacity to others. */
    c->w_max = c->cwnd < c->w_max ? c->cwnd * (1.0 + BETA) / 2.0 : c->cwnd;
    c->cwnd_prior = c->cwnd;
    c->cwnd = at_least_minimum(s, c->cwnd * BETA);
    c->ssthresh = (uint64_t)c->cwnd;
    c->in_epoch = false;
    c->has_event = true;
    c->recovery_start = now;
}

static void on_loss(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)bytes;
    cubic *s = state;
    s->loss_rate += (1 - s->loss_rate) * LOSS_RATE_GAIN;
    if (is_of_last_event(s, sent_time)) {
        s->lost++;
        return;
    }
    if (!is_congestion(s)) {
        s->has_uncounted = true;
        s->uncounted_sent_at = sent_time;
        return;
    }
    begin_event(s, now);
    s->lost = 1;
}

/* A CE mark is a congestion event whatever the path looks like, and never a spurious one. */
static void on_congestion(void *state, uint64_t sent_time, uint64_t now) {
    cubic *s = state;
    if (is_of_last_event(s, sent_time))
        return;
    begin_event(s, now);
    s->lost = UINT64_MAX / 2;
}

/* Moves the end of recovery to now, where RFC 9002 appendix B.8 clears it: packets sent before the collapse and
 * declared lost later are no new event, and must not reduce ssthresh to the collapsed window. */
static void on_persistent_congestion(void *state, uint64_t now) {
    cubic *s = state;
    curve *c = &s->c;
    if (c->ssthresh == UINT64_MAX)
        c->ssthresh = (uint64_t)at_least_minimum(s, c->cwnd * BETA);
    c->cwnd_prior = fmax(c->cwnd_prior, c->cwnd);
    c->cwnd = (double)xl_cc_minimum_window(s->mtu);
    c->w_max = 0;
    c->in_epoch = false;
    c->has_event = s->collapsed = true;
    c->recovery_start = now;
}

/* Section 4.9: undoes the last event once all of its packets have arrived, unless the window has grown back. */
static void on_spurious_loss(void *state, uint64_t sent_time, uint64_t now) {
    cubic *s = state;
    if (s->lost == 0 || !is_of_last_event(s, sent_time))
        return;
    if (s->undo.has_event && sent_time <= s->undo.recovery_start)
        return; /* lost in the previous event */
    if (s->has_uncounted && sent_time <= s->uncounted_sent_at)
        return; /* lost, perhaps, without being counted */
    if (++s->spurious < s->lost)
        return;
    s->lost = 0;
    if (s->c.cwnd >= s->undo.cwnd)
        return;
    s->c = s->undo;
    s->collapsed = false;
    s->clock_at = now;
}

static uint64_t window(const void *state) {
    return (uint64_t)((const cubic *)state)->c.cwnd;
}

static uint64_t ssthresh(const void *state) {
    return ((const cubic *)state)->c.ssthresh;
}

/* Members that both tables share. */
#define OPERATIONS                                                                                                     \
    .set_mtu = set_mtu, .on_sent = on_sent, .on_ack = on_ack, .on_loss = on_loss, .on_congestion = on_congestion,      \
    .on_persistent_congestion = on_persistent_congestion, .on_spurious_loss = on_spurious_loss, .window = window,      \
    .ssthresh = ssthresh

const xl_cc_ops xl_cc_cubic_tolerant = {.name = "cubic-tolerant", .init = init_tolerant, OPERATIONS};
const xl_cc_ops xl_cc_cubic = {.name = "cubic", .init = init_rfc9438, OPERATIONS};
