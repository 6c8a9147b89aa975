/* The queue that never drops. */
#include "emulator/link/queue.h"

static void enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    (void)now;
    xl_link_fifo_push(&queue->fifo, packet);
}

static struct xl_link_packet *dequeue(struct xl_queue *queue, uint64_t now) {
    (void)now;
    return xl_link_fifo_pop(&queue->fifo);
}

const struct xl_queue_discipline xl_queue_infinite = {
    .name = "infinite",
    .enqueue = enqueue,
    .dequeue = dequeue,
};
