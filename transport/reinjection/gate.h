/* Double-threshold control (paper section 5.2.2, Algorithm 1): whether the player needs re-injection at present. */
#pragma once

#include "xlink/xlink.h"

typedef struct {
    /* From xl_scheme. The rest is 0 at first. */
    bool enabled;     /* false: the gate is always open */
    bool extrapolate; /* subtract the time since the signal arrived from play-time left */
    uint64_t t_th1_us, t_th2_us;
    bool has_signal;
    xl_qoe signal;
    uint64_t signal_at; /* when it arrived */
    uint64_t signal_made_after;
} xl_qoe_gate;

typedef struct {
    bool on;
    uint64_t play_time_left_us; /* UINT64_MAX: unknown */
    const char *why;
} xl_qoe_decision;

/* Stores a signal. made_after: lower bound of the time at which the peer made it. Signals travel on all paths, so an
 * old one may arrive after a newer one; the signal with the later made_after is kept. Returns whether this one was
 * stored. */
bool xl_qoe_gate_signal(xl_qoe_gate *, const xl_qoe *, uint64_t made_after, uint64_t now);
/* Play-time left of a signal: the smaller of cached_frames / fps and cached_bytes / bps, µs. A rate of 0 gives no
 * estimate from that pair; both 0: UINT64_MAX. */
uint64_t xl_qoe_play_time_left(const xl_qoe *);
/* deliver_time_max_us: Equation 1, the largest RTT + variation of the paths that have unacknowledged packets. The
 * signal is extrapolated to `now`. Before the first signal the gate is open, because the player has nothing yet. */
xl_qoe_decision xl_qoe_gate_decide(const xl_qoe_gate *, uint64_t deliver_time_max_us, uint64_t now);
