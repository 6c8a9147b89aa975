/* What NewReno (RFC 9002 section 7) and the coupled controllers have in common: slow start, one decrease a congestion
 * event, persistent congestion. What they do in congestion avoidance is their own. */
#ifndef XL_CONGESTION_RENO_H
#define XL_CONGESTION_RENO_H

#include "congestion/congestion.h"

typedef struct {
    uint64_t mtu;
    double cwnd; /* bytes */
    uint64_t ssthresh;
    uint64_t recovery_start; /* packets sent until then belong to the last congestion event */
    bool has_event;
    bool collapsed; /* persistent congestion since: growth does not wait for the end of recovery */
} xl_reno;

void xl_reno_init(xl_reno *, uint64_t mtu_bytes);
void xl_reno_set_mtu(xl_reno *, uint64_t mtu_bytes);
/* Grows the window in slow start. True: the path is in congestion avoidance, the caller grows it. */
bool xl_reno_on_ack(xl_reno *, const xl_cc_ack *);
/* True when it is a new congestion event: `keep` of the window is left then. */
bool xl_reno_on_loss(xl_reno *, uint64_t sent_time, double keep, uint64_t now);
void xl_reno_on_persistent_congestion(xl_reno *, uint64_t now);
void xl_reno_set_window(xl_reno *, double bytes); /* not below the minimum window */

/* For the tables of controllers whose state begins with an xl_reno. */
void xl_reno_sent(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now);
uint64_t xl_reno_window(const void *state);
uint64_t xl_reno_ssthresh(const void *state);

#endif
