/* CoDel (RFC 8289): drops a packet that leaves a queue whose delay has stayed above `target` for an `interval`, and
 * more often the longer it stays there. Droptail's limits apply too, for bursts to which CoDel reacts too slowly. */
#include "emulator/link/codel.h"
#include "emulator/link/queue.h"

#define STANDARD_PACKETS 1000 /* as Linux's codel */

typedef struct {
    link_queue_limits limits;
    link_codel_parameters parameters;
    link_codel codel;
} codel_queue;

static const link_queue_option options[] = {
    LINK_QUEUE_LIMIT_OPTIONS(codel_queue, STANDARD_PACKETS),
    LINK_CODEL_OPTIONS(codel_queue, parameters),
    {0},
};

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    const codel_queue *c = queue->state;
    (void)now;
    if (link_queue_exceeds(queue, &c->limits)) {
        link_queue_drop(queue, packet);
        return;
    }
    link_fifo_push(&queue->fifo, packet);
}

static link_packet *dequeue(link_queue *queue, uint64_t now) {
    codel_queue *c = queue->state;
    return link_codel_dequeue(&c->codel, &c->parameters, queue, &queue->fifo, now);
}

const link_queue_discipline link_queue_codel = {
    .name = "codel",
    .options = options,
    .state_size = sizeof(codel_queue),
    .enqueue = enqueue,
    .dequeue = dequeue,
};
