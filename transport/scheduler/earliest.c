/* Earliest delivery first: a packet goes where it is expected to arrive first. What is expected is the time for all
 * that is in flight on the path at the rate at which it is being acknowledged, and never less than the path's smallest
 * RTT. The smoothed RTT, which min-RTT goes by, says how long packets took that were sent a round trip ago; a path that
 * has just lost its capacity still looks fast by it, and a large congestion window then takes a whole request at once.
 *
 * While another path is usable, no path gets more than QUEUE_MAX_US of queue: what is not committed yet can still go to
 * whichever path turns out to be fast. The idea of a limit short of the congestion window is that of BLEST (Ferlin et
 * al., IFIP Networking 2016); there it bounds blocking of the send window, here it bounds regret. */
#include "scheduler/scheduler.h"

#define QUEUE_MAX_US 300000
#define ACK_SLACK_US 8000 /* an acknowledgement waits for a second packet, and for the sender's next burst */
#define FEW_PACKETS  4    /* so many may always be in flight: without packets there is no rate to be known */

static bool is_healthy(const xl_scheduler_path *p) {
    return !p->is_suspect && !p->is_standby && p->has_rtt;
}

/* RTTs stay near the smallest, and nothing in flight is overdue. */
static bool has_no_queue(const xl_scheduler_path *p) {
    uint64_t near = p->min_rtt_us + p->min_rtt_us / 4 + ACK_SLACK_US;
    return p->latest_rtt_us <= near && p->oldest_us <= near;
}

/* When a packet sent now will be acknowledged. Without a queue the rate of acknowledgements says how much was sent, not
 * how much the path can carry: a request that is over in a few round trips never fills a fast path, and its rate looks
 * small. With a queue, the oldest packet in flight takes what is left of the smallest RTT, and the others follow at
 * that rate. */
static uint64_t arrival_us(const xl_scheduler_path *p) {
    if (p->queue_us == XL_NEVER)
        return XL_NEVER;
    if (has_no_queue(p))
        return p->min_rtt_us;
    uint64_t first = p->oldest_us < p->min_rtt_us && p->queue_us > 0 ? p->min_rtt_us - p->oldest_us : 0;
    uint64_t last = first + p->queue_us;
    return last > p->min_rtt_us ? last : p->min_rtt_us;
}

/* By a quarter: rates are estimates, and near a tie the smaller smoothed RTT decides. */
static bool is_clearly_earlier(const xl_scheduler_path *a, const xl_scheduler_path *b) {
    return a->queue_us != XL_NEVER && arrival_us(a) + arrival_us(a) / 4 < arrival_us(b);
}

static bool has_long_queue(const xl_scheduler_path *p) {
    return p->in_flight_bytes >= FEW_PACKETS * p->mtu_bytes && p->queue_us > p->min_rtt_us + QUEUE_MAX_US;
}

/* All that is still to be sent might be there sooner by a faster path alone, although its window is full at present:
 * the question of ECF (Lim et al., CoNEXT 2017), asked with the rate in place of window and RTT. */
static void wait_for_full(const xl_scheduler_view *view, xl_scheduler_decision *out) {
    const xl_scheduler_path *choice = &view->path[out->order[0]];
    for (size_t i = 0; i < view->count; i++) {
        const xl_scheduler_path *full = &view->path[i];
        if (full->has_window || !is_healthy(full) || full->pto_count > 0 || full->queue_us == 0 ||
            full->queue_us == XL_NEVER)
            continue;
        uint64_t alone = arrival_us(full) + view->unsent_bytes * full->queue_us / full->in_flight_bytes;
        if (alone < arrival_us(choice)) {
            xl_scheduler_wait(out, full, "the faster path alone completes earlier");
            return;
        }
    }
}

static void earliest_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    size_t healthy = 0, by_rtt[XL_MAX_PATHS], n = xl_scheduler_by_rtt(view, by_rtt);
    for (size_t i = 0; i < view->count; i++)
        healthy += is_healthy(&view->path[i]);
    *out = (xl_scheduler_decision){.waits_for = -1, .why = "earliest delivery"};
    for (size_t i = 0; i < n; i++) {
        const xl_scheduler_path *candidate = &view->path[by_rtt[i]];
        if (healthy > 1 && has_long_queue(candidate))
            continue;
        size_t at = out->count++;
        for (; at > 0 && is_clearly_earlier(candidate, &view->path[out->order[at - 1]]); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = by_rtt[i];
    }
    if (n > 0 && out->count == 0)
        xl_scheduler_wait(out, &view->path[by_rtt[0]], "long queues");
    else if (out->count > 0)
        wait_for_full(view, out);
}

const xl_scheduler_ops xl_scheduler_earliest = {.name = "earliest", .decide = earliest_decide, .wants_backlog = true};
