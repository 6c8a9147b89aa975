/* NewReno as RFC 9002 section 7 has it. */
#include "congestion/congestion.h"

#include <assert.h>

typedef struct {
    uint64_t mtu, cwnd, ssthresh;
    uint64_t acked;          /* bytes acknowledged in congestion avoidance since the window last grew */
    uint64_t recovery_start; /* packets sent until then belong to the last congestion event */
    bool has_event;
    bool collapsed; /* persistent congestion since: growth does not wait for the end of recovery */
} newreno;

static_assert(sizeof(newreno) <= XL_CC_STATE_BYTES, "controller state too large");

static uint64_t at_least_minimum(const newreno *s, uint64_t window) {
    uint64_t least = xl_cc_minimum_window(s->mtu);
    return window > least ? window : least;
}

static void init(void *state, uint64_t mtu_bytes, uint64_t now) {
    (void)now;
    *(newreno *)state = (newreno){.mtu = mtu_bytes, .cwnd = xl_cc_initial_window(mtu_bytes), .ssthresh = UINT64_MAX};
}

static void on_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now) {
    (void)state, (void)bytes, (void)bytes_in_flight, (void)now;
}

static bool is_of_last_event(const newreno *s, uint64_t sent_time) {
    return s->has_event && sent_time <= s->recovery_start;
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    newreno *s = state;
    if (ack->app_limited || (is_of_last_event(s, ack->sent_time) && !s->collapsed))
        return;
    if (s->cwnd < s->ssthresh) {
        s->cwnd += ack->bytes;
        return;
    }
    s->acked += ack->bytes;
    if (s->acked >= s->cwnd) {
        s->acked -= s->cwnd;
        s->cwnd += s->mtu;
    }
}

static void on_loss(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)bytes;
    newreno *s = state;
    if (is_of_last_event(s, sent_time))
        return;
    s->has_event = true;
    s->collapsed = false;
    s->recovery_start = now;
    s->ssthresh = s->cwnd = at_least_minimum(s, s->cwnd / 2);
    s->acked = 0;
}

/* The boundary of the event moves to now, where RFC 9002 appendix B.8 clears it: what was sent before the collapse and
 * is declared lost later says nothing new, and must not take ssthresh down with the collapsed window. */
static void on_persistent_congestion(void *state, uint64_t now) {
    newreno *s = state;
    if (s->ssthresh == UINT64_MAX)
        s->ssthresh = at_least_minimum(s, s->cwnd / 2);
    s->cwnd = xl_cc_minimum_window(s->mtu);
    s->acked = 0;
    s->has_event = s->collapsed = true;
    s->recovery_start = now;
}

static uint64_t window(const void *state) {
    return ((const newreno *)state)->cwnd;
}

static uint64_t ssthresh(const void *state) {
    return ((const newreno *)state)->ssthresh;
}

const xl_cc_ops xl_cc_newreno = {
    .name = "newreno",
    .init = init,
    .on_sent = on_sent,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_persistent_congestion = on_persistent_congestion,
    .window = window,
    .ssthresh = ssthresh,
};
