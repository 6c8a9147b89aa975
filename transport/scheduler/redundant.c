/* Redundant: each byte of a stream on every usable path (A. Frömmgen, T. Erbshäußer, A. Buchmann, T. Zimmermann, K.
 * Wehrle, "ReMP TCP: Low Latency Multipath TCP", IEEE ICC 2016).
 *
 * Each path walks through the stream on its own. When its congestion window has room, it sends the first bytes, in the
 * stream's order, that it has not carried and that are not acknowledged on any path. So the path that is ahead sends
 * new data, and the others send copies of it. Lost data goes before both, on whichever path can send first. Copies lie
 * below the highest offset sent, so they cost no flow-control credit. They are counted as re-injected bytes: on two
 * equal paths redundancy is 1. connection/content.c does the walk. This file only orders the paths that have a window,
 * the fastest first. */
#include "scheduler/scheduler.h"

static void redundant_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    if (xl_scheduler_decide_by_rtt(view, out))
        out->why = "every path carries everything";
}

const xl_scheduler_ops xl_scheduler_redundant = {
    .name = "redundant", .decide = redundant_decide, .passes_paced = true, .copies = true, .reads_srtt_alone = true};
