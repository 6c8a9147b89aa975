/* XLINK (paper section 5) distributes packets by min-RTT, as vanilla multipath does. It differs in their content:
 * reinjection/ decides which unacknowledged packets are sent again. */
#include "scheduler/scheduler.h"

static void xlink_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_ops xl_scheduler_xlink = {.name = "xlink", .decide = xlink_decide, .reads_srtt_alone = true};
