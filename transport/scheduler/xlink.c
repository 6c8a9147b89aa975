/* XLINK (paper section 5) distributes packets by min-RTT, as vanilla multipath does. It differs in their content:
 * reinjection/ decides which unacknowledged packets are sent again. */
#include "scheduler/scheduler.h"

const xl_scheduler_ops xl_scheduler_xlink = {
    .name = "xlink", .decide = xl_scheduler_minrtt_decide, .reads_srtt_alone = true};
