/* The state that the coupled controllers share, and how they see their siblings: LIA, OLIA, BALIA. Each is one file
 * with its own increase; slow start and the one decrease a congestion event are NewReno's. */
#ifndef XL_CONGESTION_COUPLED_H
#define XL_CONGESTION_COUPLED_H

#include "congestion/reno.h"

#include <assert.h>

typedef struct {
    xl_reno reno;
    xl_cc_group *group; /* NULL: a path without siblings */
    size_t member;      /* which of the group it is */
    xl_cc_member alone; /* in place of the group */
    /* OLIA: bytes acknowledged since the last loss, and between the last two. */
    double since_loss, before_loss;
} xl_coupled;

static_assert(sizeof(xl_coupled) <= XL_CC_STATE_BYTES, "controller state too large");

void xl_coupled_init(void *state, uint64_t mtu_bytes, uint64_t now);
void xl_coupled_set_mtu(void *state, uint64_t mtu_bytes);
void xl_coupled_join(void *state, xl_cc_group *, size_t member);
void xl_coupled_on_persistent_congestion(void *state, uint64_t now);
/* Takes in an acknowledgement. True: in congestion avoidance, the caller adds its increase to reno.cwnd and then calls
 * xl_coupled_publish(). */
bool xl_coupled_on_ack(xl_coupled *, const xl_cc_ack *);
/* A loss; `keep` of the window is left by a new congestion event. */
void xl_coupled_on_loss(xl_coupled *, uint64_t sent_time, double keep, uint64_t now);
void xl_coupled_on_loss_by_half(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now); /* for the tables */
/* Shows window, RTT and losses to the siblings. */
void xl_coupled_publish(xl_coupled *);

/* The siblings that count, itself first: active paths with an RTT. Returns how many. */
size_t xl_coupled_siblings(const xl_coupled *, const xl_cc_member *out[XL_CC_GROUP_MAX]);

#endif
