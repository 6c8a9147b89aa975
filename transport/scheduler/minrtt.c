/* min-RTT, the scheduler of vanilla multipath QUIC (paper section 3; the default of Linux MPTCP and MPQUIC): of the
 * paths with room in their congestion window, the one with the smallest smoothed RTT. */
#include "scheduler/scheduler.h"

static void minrtt_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_ops xl_scheduler_minrtt = {.name = "minrtt", .decide = minrtt_decide, .reads_srtt_alone = true};
