/* XLINK (paper section 5): packets are distributed by min-RTT as in vanilla multipath; what sets it apart is the
 * content, namely the re-injection of unacknowledged packets, which reinjection/ decides. */
#include "scheduler/scheduler.h"

static size_t xlink_order(void *state, const xl_scheduler_view *view, size_t order[XL_MAX_PATHS]) {
    (void)state;
    return xl_scheduler_by_rtt(view, order);
}

const xl_scheduler_ops xl_scheduler_xlink = {.name = "xlink", .order = xlink_order};
