/* Round-robin: the paths take turns, packet by packet (C. Paasch, S. Ferlin, O. Alay, O. Bonaventure, "Experimental
 * Evaluation of Multipath TCP Schedulers", ACM SIGCOMM Capacity Sharing Workshop 2014). A path without room in its
 * congestion window, or whose pacer holds it back, loses its turn. A baseline that ignores delay: on unequal paths it
 * shows what other schedulers gain. */
#include "scheduler/scheduler.h"

typedef struct {
    int after; /* index of the path that sent last */
} roundrobin;

static void roundrobin_init(void *state) {
    ((roundrobin *)state)->after = -1;
}

/* Returns how many turns of other paths come before this path's. */
static int turns_until(const roundrobin *s, int index) {
    int distance = index - s->after - 1;
    return distance >= 0 ? distance : distance + XL_MAX_PATHS;
}

static void roundrobin_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    const roundrobin *s = state;
    if (!xl_scheduler_decide_by_rtt(view, out))
        return;
    for (size_t i = 1; i < out->count; i++) {
        size_t moving = out->order[i], at = i;
        int turn = turns_until(s, view->path[moving].index);
        for (; at > 0 && turn < turns_until(s, view->path[out->order[at - 1]].index); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = moving;
    }
    out->why = "its turn";
}

static void roundrobin_sent(void *state, int path_index, uint64_t bytes) {
    (void)bytes;
    ((roundrobin *)state)->after = path_index;
}

const xl_scheduler_ops xl_scheduler_roundrobin = {.name = "roundrobin",
                                                  .init = roundrobin_init,
                                                  .decide = roundrobin_decide,
                                                  .sent = roundrobin_sent,
                                                  .passes_paced = true,
                                                  .reads_srtt_alone = true};
