/* Drophead: takes every packet, and drops the oldest while the queue exceeds its limit of packets or bytes. A packet
 * that alone exceeds the limit of bytes empties the queue and is dropped too. */
#include "emulator/link/queue.h"

typedef struct {
    link_queue_limits limits;
} drophead;

static const link_queue_option options[] = {LINK_QUEUE_LIMIT_OPTIONS(drophead, 0), {0}};

static const char *check(const void *state) {
    const drophead *d = state;
    return d->limits.packets == 0 && d->limits.bytes == 0 ? "needs a limit: drophead:packets=N or drophead:bytes=N"
                                                          : NULL;
}

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    const drophead *d = queue->state;
    (void)now;
    link_fifo_push(&queue->fifo, packet);
    while (link_queue_exceeds(queue, &d->limits))
        link_queue_drop(queue, link_fifo_pop(&queue->fifo));
}

const link_queue_discipline link_queue_drophead = {
    .name = "drophead",
    .options = options,
    .state_size = sizeof(drophead),
    .check = check,
    .enqueue = enqueue,
    .dequeue = link_queue_oldest,
};
