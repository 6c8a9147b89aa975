/* Droptail: a packet that would take the queue over its limit of packets or of bytes is dropped. A packet that is
 * partly served is no longer in the queue and does not count. */
#include "emulator/link/queue.h"

struct droptail {
    struct xl_queue_limits limits;
};

static const struct xl_queue_option options[] = {XL_QUEUE_LIMIT_OPTIONS(struct droptail, 0), {0}};

static const char *check(const void *state) {
    const struct droptail *d = state;
    return d->limits.packets == 0 && d->limits.bytes == 0 ? "needs a limit: droptail:packets=N or droptail:bytes=N"
                                                          : NULL;
}

static void enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    const struct droptail *d = queue->state;
    (void)now;
    if (xl_queue_exceeds(queue, &d->limits)) {
        xl_queue_drop(queue, packet);
        return;
    }
    xl_link_fifo_push(&queue->fifo, packet);
}

static struct xl_link_packet *dequeue(struct xl_queue *queue, uint64_t now) {
    (void)now;
    return xl_link_fifo_pop(&queue->fifo);
}

const struct xl_queue_discipline xl_queue_droptail = {
    .name = "droptail",
    .options = options,
    .state_size = sizeof(struct droptail),
    .check = check,
    .enqueue = enqueue,
    .dequeue = dequeue,
};
