/* PIE (RFC 8033): drops arriving packets with a probability that is updated every 15 ms from the queue's delay and its
 * trend. The delay is the age of the oldest queued packet (section 4.2's timestamps), because the departure rate of a
 * link that replays a trace does not predict the delay.
 *
 * With de-randomization (section 5.4), the cap on steps (5.5) and droptail's limits. No ECN, always active. */
#include "emulator/link/queue.h"

#define T_UPDATE_US      15000u
#define QDELAY_REF_US    15000u
#define MAX_BURST_US     150000u
#define STANDARD_PACKETS 1000 /* as Linux's pie */
#define ALPHA            0.125
#define BETA             1.25
#define MEAN_PACKET      LINK_OPPORTUNITY_BYTES

/* The names are those of RFC 8033, appendix A. */
typedef struct {
    link_queue_limits limits;
    uint64_t qdelay_ref_us;
    uint64_t max_burst_us;
    double drop_prob;
    double accu_prob;
    uint64_t qdelay_old_us;
    uint64_t burst_allowance_us;
    uint64_t updated_us; /* the last update */
} pie_queue;

static const link_queue_option options[] = {
    LINK_QUEUE_LIMIT_OPTIONS(pie_queue, STANDARD_PACKETS),
    {"qdelay_ref", offsetof(pie_queue, qdelay_ref_us), LINK_QUEUE_MS, 1, UINT64_C(3600000000), QDELAY_REF_US},
    {"max_burst", offsetof(pie_queue, max_burst_us), LINK_QUEUE_MS, 0, UINT64_C(3600000000), MAX_BURST_US},
    {0},
};

static bool start(link_queue *queue) {
    pie_queue *pie = queue->state;
    pie->burst_allowance_us = pie->max_burst_us;
    return true;
}

/* Section 4.2: returns the factor of the step at the present probability. */
static double scale(double drop_prob) {
    static const struct {
        double below, factor;
    } steps[] = {{0.000001, 2048}, {0.00001, 512}, {0.0001, 128}, {0.001, 32}, {0.01, 8}, {0.1, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (drop_prob < steps[i].below)
            return 1.0 / steps[i].factor;
    return 1.0;
}

static double seconds(uint64_t us) {
    return (double)us / 1e6;
}

/* Appendix A, calculate_drop_prob(). */
static void update(pie_queue *pie, uint64_t qdelay_us) {
    double qdelay = seconds(qdelay_us);
    double step = scale(pie->drop_prob) *
                  (ALPHA * (qdelay - seconds(pie->qdelay_ref_us)) + BETA * (qdelay - seconds(pie->qdelay_old_us)));
    if (pie->drop_prob >= 0.1 && step > 0.02)
        step = 0.02;
    double p = pie->drop_prob + step;
    if (qdelay_us == 0 && pie->qdelay_old_us == 0)
        p *= 0.98;
    pie->drop_prob = p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p;
    pie->burst_allowance_us -= pie->burst_allowance_us < T_UPDATE_US ? pie->burst_allowance_us : T_UPDATE_US;
    if (pie->drop_prob == 0.0 && 2 * qdelay_us < pie->qdelay_ref_us && 2 * pie->qdelay_old_us < pie->qdelay_ref_us)
        pie->burst_allowance_us = pie->max_burst_us;
    pie->qdelay_old_us = qdelay_us;
}

static uint64_t age(const link_queue *queue, uint64_t t) {
    const link_packet *oldest = queue->fifo.head;
    return oldest && t > oldest->arrival_us ? t - oldest->arrival_us : 0;
}

/* Whether updates from t on change nothing until the queue changes: it is empty, or the probability is 1. */
static bool is_settled(const link_queue *queue, const pie_queue *pie, uint64_t t) {
    if (!queue->fifo.head)
        return pie->drop_prob == 0.0 && pie->qdelay_old_us == 0 && pie->burst_allowance_us == pie->max_burst_us;
    uint64_t qdelay_us = age(queue, t);
    return pie->drop_prob >= 1.0 && pie->burst_allowance_us == 0 && qdelay_us >= pie->qdelay_ref_us &&
           qdelay_us >= pie->qdelay_old_us;
}

/* Makes the updates that were due while the queue did not change. */
static void catch_up(link_queue *queue, pie_queue *pie, uint64_t now) {
    while (now - pie->updated_us >= T_UPDATE_US) {
        if (is_settled(queue, pie, pie->updated_us + T_UPDATE_US)) {
            pie->updated_us = now - now % T_UPDATE_US;
            pie->qdelay_old_us = age(queue, pie->updated_us);
            return;
        }
        pie->updated_us += T_UPDATE_US;
        update(pie, age(queue, pie->updated_us));
    }
}

/* Section 4.1 and appendix A, drop_early(). */
static bool drops_early(link_queue *queue, pie_queue *pie, const link_packet *packet) {
    uint64_t queued = queue->bytes - link_packet_bytes(packet);
    if (pie->burst_allowance_us > 0 || (2 * pie->qdelay_old_us < pie->qdelay_ref_us && pie->drop_prob < 0.2) ||
        queued <= 2 * MEAN_PACKET)
        return false;
    if (pie->drop_prob == 0.0)
        pie->accu_prob = 0.0;
    pie->accu_prob += pie->drop_prob;
    if (pie->accu_prob < 0.85)
        return false;
    bool drop = link_rng_uniform(&queue->rng) < pie->drop_prob || pie->accu_prob >= 8.5;
    pie->accu_prob = drop ? 0.0 : pie->accu_prob;
    return drop;
}

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    pie_queue *pie = queue->state;
    catch_up(queue, pie, now);
    if (drops_early(queue, pie, packet) || link_queue_exceeds(queue, &pie->limits)) {
        link_queue_drop(queue, packet);
        return;
    }
    link_fifo_push(&queue->fifo, packet);
}

static link_packet *dequeue(link_queue *queue, uint64_t now) {
    catch_up(queue, queue->state, now);
    return link_fifo_pop(&queue->fifo);
}

const link_queue_discipline link_queue_pie = {
    .name = "pie",
    .options = options,
    .state_size = sizeof(pie_queue),
    .start = start,
    .enqueue = enqueue,
    .dequeue = dequeue,
};
