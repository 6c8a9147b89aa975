/* min-RTT, the scheduler of vanilla multipath QUIC (paper section 3; the default of Linux MPTCP and MPQUIC): of the
 * paths with room in their congestion window, the one with the smallest smoothed RTT. */
#include "scheduler/scheduler.h"

const xl_scheduler_ops xl_scheduler_minrtt = {
    .name = "minrtt", .decide = xl_scheduler_minrtt_decide, .reads_srtt_alone = true};
