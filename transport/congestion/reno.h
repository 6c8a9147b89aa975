/* What NewReno (RFC 9002 section 7) and the coupled controllers have in common: slow start, one decrease at each
 * congestion event, persistent congestion. Each has its own increase in congestion avoidance. */
#pragma once

#include "congestion/congestion.h"

typedef struct {
    uint64_t mtu;
    double cwnd; /* bytes */
    uint64_t ssthresh;
    uint64_t recovery_start; /* packets sent up to this time belong to the last congestion event */
    bool has_event;
    bool collapsed; /* persistent congestion followed the event: growth does not wait for the end of recovery */
} xl_reno;

void xl_reno_init(xl_reno *, uint64_t mtu_bytes);
void xl_reno_set_mtu(xl_reno *, uint64_t mtu_bytes);
/* Increases the window in slow start. True: the path is in congestion avoidance, and the caller increases it. */
bool xl_reno_on_ack(xl_reno *, const xl_cc_ack *);
/* True: this is a new congestion event, which reduced the window to `keep` of it. */
bool xl_reno_on_loss(xl_reno *, uint64_t sent_time, double keep, uint64_t now);
void xl_reno_on_persistent_congestion(xl_reno *, uint64_t now);
void xl_reno_set_window(xl_reno *, double bytes); /* at least the minimum window */

/* For the tables of controllers whose state begins with an xl_reno. */
void xl_reno_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now);
uint64_t xl_reno_window(const void *state);
uint64_t xl_reno_ssthresh(const void *state);
