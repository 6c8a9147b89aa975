/* XLINK (paper section 5): packets are distributed by min-RTT as in vanilla multipath; what sets it apart is the
 * content, namely the re-injection of unacknowledged packets, which reinjection/ decides. */
#include "scheduler/scheduler.h"

static void xlink_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_ops xl_scheduler_xlink = {.name = "xlink", .decide = xlink_decide, .reads_srtt_alone = true};
