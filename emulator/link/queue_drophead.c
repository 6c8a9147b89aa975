/* Drophead: every packet is taken; while the queue is over its limit of packets or of bytes, the oldest is dropped. A
 * packet that is larger than the limit of bytes by itself empties the queue and goes too. */
#include "emulator/link/queue.h"

struct drophead {
    struct xl_queue_limits limits;
};

static const struct xl_queue_option options[] = {XL_QUEUE_LIMIT_OPTIONS(struct drophead, 0), {0}};

static const char *check(const void *state) {
    const struct drophead *d = state;
    return d->limits.packets == 0 && d->limits.bytes == 0 ? "needs a limit: drophead:packets=N or drophead:bytes=N"
                                                          : NULL;
}

static void enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    const struct drophead *d = queue->state;
    (void)now;
    xl_link_fifo_push(&queue->fifo, packet);
    while (xl_queue_exceeds(queue, &d->limits))
        xl_queue_drop(queue, xl_link_fifo_pop(&queue->fifo));
}

static struct xl_link_packet *dequeue(struct xl_queue *queue, uint64_t now) {
    (void)now;
    return xl_link_fifo_pop(&queue->fifo);
}

const struct xl_queue_discipline xl_queue_drophead = {
    .name = "drophead",
    .options = options,
    .state_size = sizeof(struct drophead),
    .check = check,
    .enqueue = enqueue,
    .dequeue = dequeue,
};
