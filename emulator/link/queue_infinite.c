/* The queue that never drops. */
#include "emulator/link/queue.h"

static void enqueue(struct link_queue *queue, struct link_packet *packet, uint64_t now) {
    (void)now;
    link_fifo_push(&queue->fifo, packet);
}

static struct link_packet *dequeue(struct link_queue *queue, uint64_t now) {
    (void)now;
    return link_fifo_pop(&queue->fifo);
}

const struct link_queue_discipline link_queue_infinite = {
    .name = "infinite",
    .enqueue = enqueue,
    .dequeue = dequeue,
};
