#include "congestion/reno.h"

void xl_reno_init(xl_reno *s, uint64_t mtu_bytes) {
    *s = (xl_reno){.mtu = mtu_bytes, .cwnd = (double)xl_cc_initial_window(mtu_bytes), .ssthresh = UINT64_MAX};
}

void xl_reno_set_window(xl_reno *s, double bytes) {
    double least = (double)xl_cc_minimum_window(s->mtu);
    s->cwnd = bytes > least ? bytes : least;
}

void xl_reno_set_mtu(xl_reno *s, uint64_t mtu_bytes) {
    double window = s->ssthresh == UINT64_MAX ? xl_cc_window_for_mtu(s->cwnd, s->mtu, mtu_bytes) : s->cwnd;
    s->mtu = mtu_bytes;
    xl_reno_set_window(s, window);
}

static bool is_of_last_event(const xl_reno *s, uint64_t sent_time) {
    return s->has_event && sent_time <= s->recovery_start;
}

bool xl_reno_on_ack(xl_reno *s, const xl_cc_ack *ack) {
    if (ack->app_limited || (is_of_last_event(s, ack->sent_time) && !s->collapsed))
        return false;
    if (s->cwnd >= (double)s->ssthresh)
        return true;
    s->cwnd += (double)ack->bytes;
    return false;
}

bool xl_reno_on_loss(xl_reno *s, uint64_t sent_time, double keep, uint64_t now) {
    if (is_of_last_event(s, sent_time))
        return false;
    s->has_event = true;
    s->collapsed = false;
    s->recovery_start = now;
    xl_reno_set_window(s, s->cwnd * keep);
    s->ssthresh = (uint64_t)s->cwnd;
    return true;
}

/* Moves the end of recovery to now, where RFC 9002 appendix B.8 clears it: packets sent before the collapse and
 * declared lost later are no new event, and must not reduce ssthresh to the collapsed window. */
void xl_reno_on_persistent_congestion(xl_reno *s, uint64_t now) {
    double half = s->cwnd / 2.0;
    xl_reno_set_window(s, half);
    if (s->ssthresh == UINT64_MAX)
        s->ssthresh = (uint64_t)s->cwnd;
    s->cwnd = (double)xl_cc_minimum_window(s->mtu);
    s->has_event = s->collapsed = true;
    s->recovery_start = now;
}

void xl_reno_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now) {
    (void)state, (void)bytes, (void)bytes_in_flight, (void)now;
}

uint64_t xl_reno_window(const void *state) {
    return (uint64_t)((const xl_reno *)state)->cwnd;
}

uint64_t xl_reno_ssthresh(const void *state) {
    return ((const xl_reno *)state)->ssthresh;
}
