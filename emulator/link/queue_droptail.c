/* Droptail: drops a packet that would take the queue over its limit of packets or bytes. A packet that is partly served
 * is no longer in the queue and does not count. */
#include "emulator/link/queue.h"

typedef struct {
    link_queue_limits limits;
} droptail;

static const link_queue_option options[] = {LINK_QUEUE_LIMIT_OPTIONS(droptail, 0), {0}};

static const char *check(const void *state) {
    const droptail *d = state;
    return d->limits.packets == 0 && d->limits.bytes == 0 ? "needs a limit: droptail:packets=N or droptail:bytes=N"
                                                          : NULL;
}

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    const droptail *d = queue->state;
    (void)now;
    if (link_queue_exceeds(queue, &d->limits)) {
        link_queue_drop(queue, packet);
        return;
    }
    link_fifo_push(&queue->fifo, packet);
}

static bool keeps(const link_queue *queue, size_t packets, uint64_t bytes) {
    const droptail *d = queue->state;
    return link_queue_limits_allow(&d->limits, packets, bytes);
}

const link_queue_discipline link_queue_droptail = {
    .name = "droptail",
    .options = options,
    .state_size = sizeof(droptail),
    .check = check,
    .enqueue = enqueue,
    .dequeue = link_queue_oldest,
    .keeps = keeps,
};
