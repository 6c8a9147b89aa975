/* The queue that never drops. */
#include "emulator/link/queue.h"

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    (void)now;
    link_fifo_push(&queue->fifo, packet);
}

const link_queue_discipline link_queue_infinite = {
    .name = "infinite",
    .enqueue = enqueue,
    .dequeue = link_queue_oldest,
};
