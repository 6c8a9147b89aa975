/* The queue that never drops. */
#include "emulator/link/queue.h"

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    (void)now;
    link_fifo_push(&queue->fifo, packet);
}

static link_packet *dequeue(link_queue *queue, uint64_t now) {
    (void)now;
    return link_fifo_pop(&queue->fifo);
}

const link_queue_discipline link_queue_infinite = {
    .name = "infinite",
    .enqueue = enqueue,
    .dequeue = dequeue,
};
