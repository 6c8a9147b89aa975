/* Droptail: a packet that would take the queue over its limit of packets or of bytes is dropped. A packet that is
 * partly served is no longer in the queue and does not count. */
#include <string.h>

#include "emulator/link/queue.h"

struct droptail {
    uint64_t packet_limit; /* 0 = no limit */
    uint64_t byte_limit;   /* 0 = no limit; counts 4 bytes a packet more than its IP length */
};

static bool set_option(void *state, const char *key, uint64_t value) {
    struct droptail *d = state;
    if (value == 0) {
        return false;
    }
    if (strcmp(key, "packets") == 0) {
        d->packet_limit = value;
        return true;
    }
    if (strcmp(key, "bytes") == 0) {
        d->byte_limit = value;
        return true;
    }
    return false;
}

static const char *check(const void *state) {
    const struct droptail *d = state;
    return d->packet_limit == 0 && d->byte_limit == 0 ? "needs a limit: droptail:packets=N or droptail:bytes=N" : NULL;
}

static void enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    const struct droptail *d = queue->state;
    (void)now;
    if ((d->packet_limit != 0 && queue->fifo.packets + 1 > d->packet_limit) ||
        (d->byte_limit != 0 && queue->fifo.bytes + xl_link_packet_bytes(packet) > d->byte_limit)) {
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
    .options = "packets=N, bytes=N (N at least 1)",
    .state_size = sizeof(struct droptail),
    .set_option = set_option,
    .check = check,
    .enqueue = enqueue,
    .dequeue = dequeue,
};
