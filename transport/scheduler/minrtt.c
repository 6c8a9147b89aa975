/* min-RTT, the scheduler of vanilla multipath QUIC (paper section 3; the default of Linux MPTCP and MPQUIC): of the
 * paths with room in their congestion window, the one with the smallest smoothed RTT. */
#include "scheduler/scheduler.h"

static size_t minrtt_order(void *state, const xl_scheduler_view *view, size_t order[XL_MAX_PATHS]) {
    (void)state;
    return xl_scheduler_by_rtt(view, order);
}

const xl_scheduler_ops xl_scheduler_minrtt = {.name = "minrtt", .order = minrtt_order};
