/* min-RTT as in stacks whose pacer is below the scheduler: a path whose pacer delays the packet is skipped, so that a
 * burst continues on the next path instead of waiting. For comparisons with `earliest`, which does that too. */
#include "scheduler/scheduler.h"

const xl_scheduler_ops xl_scheduler_minrtt_passing = {
    .name = "minrtt-passing", .decide = xl_scheduler_minrtt_decide, .passes_paced = true, .reads_srtt_alone = true};
