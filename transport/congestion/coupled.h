/* What the coupled controllers LIA, OLIA and BALIA have in common. Each is one file with its own increase. Slow start
 * is NewReno's, and so is the decrease at a congestion event, except BALIA's. "Siblings" are a group's active paths. */
#pragma once

#include "congestion/reno.h"

#include <assert.h>

typedef struct {
    xl_reno reno;
    xl_cc_group *group; /* NULL: the path has no siblings */
    size_t member;      /* its index in the group */
    xl_cc_member alone; /* its state if there is no group */
    /* OLIA: bytes acknowledged since the last loss, and between the last two losses. */
    double since_loss, before_loss;
} xl_coupled;

static_assert(sizeof(xl_coupled) <= XL_CC_STATE_BYTES, "controller state too large");

void xl_coupled_init(void *state, uint64_t mtu_bytes, uint64_t now);
void xl_coupled_set_mtu(void *state, uint64_t mtu_bytes);
void xl_coupled_join(void *state, xl_cc_group *, size_t member);
void xl_coupled_on_persistent_congestion(void *state, uint64_t now);
/* Processes an acknowledgement. True: the path is in congestion avoidance; the caller adds its increase to reno.cwnd
 * and calls xl_coupled_publish(). */
bool xl_coupled_on_ack(xl_coupled *, const xl_cc_ack *);
/* Processes a loss. A new congestion event reduces the window to `keep` of it. */
void xl_coupled_on_loss(xl_coupled *, uint64_t sent_time, double keep, uint64_t now);
void xl_coupled_on_loss_by_half(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now); /* for the tables */
/* Copies window, RTT and losses to the group. */
void xl_coupled_publish(xl_coupled *);

/* The members that their tables share. */
#define XL_COUPLED_OPS                                                                                                 \
    .init = xl_coupled_init, .set_mtu = xl_coupled_set_mtu, .join = xl_coupled_join, .on_sent = xl_reno_sent,          \
    .on_persistent_congestion = xl_coupled_on_persistent_congestion, .window = xl_reno_window,                         \
    .ssthresh = xl_reno_ssthresh

/* Writes the active paths with an RTT to out, this path first. Returns their number. */
size_t xl_coupled_siblings(const xl_coupled *, const xl_cc_member *out[XL_CC_GROUP_MAX]);
