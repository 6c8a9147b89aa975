/* CoDel (RFC 8289): a packet that leaves a queue whose delay has stayed above `target` for an `interval` is dropped,
 * and more often the longer it stays there. On top of it droptail's limits, for what CoDel is too slow for. */
#include "emulator/link/codel.h"
#include "emulator/link/queue.h"

#define STANDARD_PACKETS 1000 /* as Linux's codel */

struct codel_queue {
    struct xl_queue_limits limits;
    struct xl_codel_parameters parameters;
    struct xl_codel codel;
};

static const struct xl_queue_option options[] = {
    XL_QUEUE_LIMIT_OPTIONS(struct codel_queue, STANDARD_PACKETS),
    XL_CODEL_OPTIONS(struct codel_queue, parameters),
    {0},
};

static void enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    const struct codel_queue *c = queue->state;
    (void)now;
    if (xl_queue_exceeds(queue, &c->limits)) {
        xl_queue_drop(queue, packet);
        return;
    }
    xl_link_fifo_push(&queue->fifo, packet);
}

static struct xl_link_packet *dequeue(struct xl_queue *queue, uint64_t now) {
    struct codel_queue *c = queue->state;
    return xl_codel_dequeue(&c->codel, &c->parameters, queue, &queue->fifo, now);
}

const struct xl_queue_discipline xl_queue_codel = {
    .name = "codel",
    .options = options,
    .state_size = sizeof(struct codel_queue),
    .enqueue = enqueue,
    .dequeue = dequeue,
};
