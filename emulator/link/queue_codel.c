/* CoDel (RFC 8289): a packet that leaves a queue whose delay has stayed above `target` for an `interval` is dropped,
 * and more often the longer it stays there. On top of it droptail's limits, for what CoDel is too slow for. */
#include "emulator/link/codel.h"
#include "emulator/link/queue.h"

#define STANDARD_PACKETS 1000 /* as Linux's codel */

struct codel_queue {
    struct link_queue_limits limits;
    struct link_codel_parameters parameters;
    struct link_codel codel;
};

static const struct link_queue_option options[] = {
    LINK_QUEUE_LIMIT_OPTIONS(struct codel_queue, STANDARD_PACKETS),
    LINK_CODEL_OPTIONS(struct codel_queue, parameters),
    {0},
};

static void enqueue(struct link_queue *queue, struct link_packet *packet, uint64_t now) {
    const struct codel_queue *c = queue->state;
    (void)now;
    if (link_queue_exceeds(queue, &c->limits)) {
        link_queue_drop(queue, packet);
        return;
    }
    link_fifo_push(&queue->fifo, packet);
}

static struct link_packet *dequeue(struct link_queue *queue, uint64_t now) {
    struct codel_queue *c = queue->state;
    return link_codel_dequeue(&c->codel, &c->parameters, queue, &queue->fifo, now);
}

const struct link_queue_discipline link_queue_codel = {
    .name = "codel",
    .options = options,
    .state_size = sizeof(struct codel_queue),
    .enqueue = enqueue,
    .dequeue = dequeue,
};
