/* Earliest delivery first: a packet goes to the path where it is expected to arrive first. The estimate is the time to
 * deliver all bytes in flight on the path at its capacity, at least the path's smallest RTT. The smoothed RTT, which
 * min-RTT uses, shows the delay of packets that were sent a round trip ago: a path that has just lost its capacity
 * still looks fast, and a large congestion window then takes a whole request at once.
 *
 * While another path is usable, no path gets more than QUEUE_MAX_US of queue, because unsent data can still go to
 * whichever path turns out to be fast. Delay by others' packets does not count, because waiting does not reduce it.
 * BLEST (Ferlin et al., IFIP Networking 2016) also limits a path below its congestion window; there the limit bounds
 * blocking of the send window, here it bounds regret. */
#include "minmax.h"
#include "scheduler/scheduler.h"

#define QUEUE_MAX_US 150000
#define ACK_SLACK_US 8000 /* an acknowledgement waits for a second packet, and for the sender's next burst */
#define FEW_PACKETS  10   /* may always be in flight, as many as an initial window: they measure the rate */

static bool is_healthy(const xl_scheduler_path *p) {
    return !p->is_suspect && !p->is_standby && p->has_rtt;
}

/* Whether RTTs stay near the smallest one and no packet in flight is overdue. */
static bool has_no_queue(const xl_scheduler_path *p) {
    uint64_t near = p->min_rtt_us + p->min_rtt_us / 4 + ACK_SLACK_US;
    return p->latest_rtt_us <= near && p->oldest_us <= near;
}

/* Time until all bytes in flight are acknowledged. Without a queue the present rate of acknowledgements is the rate of
 * sending, not what the path can carry, so the capacity alone counts. With a queue the larger of both times counts: the
 * rate falls as soon as acknowledgements stop. */
static uint64_t drain_us(const xl_scheduler_path *p) {
    return has_no_queue(p) ? p->drain_us : xl_max(p->drain_us, p->queue_us);
}

/* Expected time until a packet sent now arrives: half of the smallest RTT before its acknowledgement, jitter ignored.
 * The oldest packet in flight takes what is left of the smallest RTT, and the others follow at the path's rate. */
static uint64_t arrival_us(const xl_scheduler_path *p) {
    uint64_t drain = drain_us(p);
    if (drain == XL_NEVER)
        return XL_NEVER;
    uint64_t first = p->oldest_us < p->min_rtt_us && p->in_flight_bytes > 0 ? p->min_rtt_us - p->oldest_us : 0;
    return xl_max(first + drain, p->min_rtt_us) - p->min_rtt_us / 2;
}

/* Whether a_us is earlier by more than 30 %. Rates are estimates; near a tie the smaller smoothed RTT decides. */
static bool is_clearly_earlier(uint64_t a_us, uint64_t b_us) {
    return a_us != XL_NEVER && a_us + a_us / 10 * 3 < b_us;
}

static bool has_long_queue(const xl_scheduler_path *p) {
    if (p->in_flight_bytes < FEW_PACKETS * p->mtu_bytes || (p->is_capacity_bound && has_no_queue(p)))
        return false;
    return drain_us(p) > p->min_rtt_us + p->cross_us + QUEUE_MAX_US;
}

/* Waits for a faster path with a full window if it alone would deliver all unsent data earlier. This is the question of
 * ECF (Lim et al., CoNEXT 2017), with the rate in place of window and RTT. */
static void wait_for_full(const xl_scheduler_view *view, xl_scheduler_decision *out) {
    const xl_scheduler_path *choice = &view->path[out->order[0]];
    for (size_t i = 0; i < view->count; i++) {
        const xl_scheduler_path *full = &view->path[i];
        uint64_t drain = drain_us(full);
        if (full->has_window || !is_healthy(full) || full->pto_count > 0 || drain == 0 || drain == XL_NEVER)
            continue;
        uint64_t alone = arrival_us(full) + view->unsent_bytes * drain / full->in_flight_bytes;
        if (alone < arrival_us(choice)) {
            xl_scheduler_wait(out, full, "the faster path alone completes earlier");
            return;
        }
    }
}

/* If the pacer holds back the first choice, removes the other paths, except those that deliver a packet clearly before
 * the first choice alone would deliver all unsent data at its pacing rate. */
static void use_while_paced(const xl_scheduler_view *view, xl_scheduler_decision *out) {
    const xl_scheduler_path *best = &view->path[out->order[0]];
    uint64_t alone = arrival_us(best);
    if (!best->is_paced || alone == XL_NEVER)
        return;
    if (best->pacing_bytes_per_s > 0)
        alone += view->unsent_bytes * 1000000 / best->pacing_bytes_per_s;
    size_t count = 1;
    for (size_t i = 1; i < out->count; i++)
        if (is_clearly_earlier(arrival_us(&view->path[out->order[i]]), alone))
            out->order[count++] = out->order[i];
    out->count = count;
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
        for (; at > 0 && is_clearly_earlier(arrival_us(candidate), arrival_us(&view->path[out->order[at - 1]])); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = by_rtt[i];
    }
    if (n > 0 && out->count == 0)
        xl_scheduler_wait(out, &view->path[by_rtt[0]], "long queues");
    else if (out->count > 0)
        wait_for_full(view, out);
    if (out->count > 1)
        use_while_paced(view, out);
}

const xl_scheduler_ops xl_scheduler_earliest = {
    .name = "earliest",
    .decide = earliest_decide,
    .passes_paced = true,
    .wants_backlog = true,
    .wants_queues = true,
};
