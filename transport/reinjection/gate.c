#include "reinjection/gate.h"

bool xl_qoe_gate_signal(xl_qoe_gate *g, const xl_qoe *signal, uint64_t made_after, uint64_t now) {
    if (g->has_signal && made_after < g->signal_made_after)
        return false;
    g->has_signal = true;
    g->signal = *signal;
    g->signal_made_after = made_after;
    g->signal_at = now;
    return true;
}

/* quantity / rate in µs; saturates instead of overflowing, whatever a peer claims. */
static uint64_t time_of(uint64_t quantity, uint64_t rate) {
    uint64_t seconds = quantity / rate;
    if (seconds >= UINT64_MAX / 1000000 - 1)
        return UINT64_MAX - 1;
    return seconds * 1000000 + (uint64_t)((double)(quantity % rate) * 1e6 / (double)rate);
}

uint64_t xl_qoe_play_time_left(const xl_qoe *q) {
    uint64_t left = UINT64_MAX;
    if (q->fps > 0)
        left = time_of(q->cached_frames, q->fps);
    if (q->bps > 0) {
        uint64_t by_bytes = time_of(q->cached_bytes > UINT64_MAX / 8 ? UINT64_MAX : q->cached_bytes * 8, q->bps);
        if (by_bytes < left)
            left = by_bytes;
    }
    return left;
}

xl_qoe_decision xl_qoe_gate_decide(const xl_qoe_gate *g, uint64_t deliver_time_max_us, uint64_t now) {
    if (!g->enabled)
        return (xl_qoe_decision){true, UINT64_MAX, "no control"};
    if (!g->has_signal)
        return (xl_qoe_decision){true, UINT64_MAX, "no signal yet"};
    uint64_t left = xl_qoe_play_time_left(&g->signal);
    if (left == UINT64_MAX)
        return (xl_qoe_decision){true, UINT64_MAX, "signal without rates"};
    uint64_t elapsed = g->extrapolate && now > g->signal_at ? now - g->signal_at : 0;
    left = left > elapsed ? left - elapsed : 0;
    if (left > g->t_th2_us)
        return (xl_qoe_decision){false, left, "above T_th2"};
    if (left < g->t_th1_us)
        return (xl_qoe_decision){true, left, "below T_th1"};
    if (left < deliver_time_max_us)
        return (xl_qoe_decision){true, left, "below deliverTime_max"};
    return (xl_qoe_decision){false, left, "above deliverTime_max"};
}
