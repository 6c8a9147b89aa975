/* Queues of a link, and the disciplines that decide what they drop.
 *
 * A discipline is one file and one line in the table of queue.c. It is named on the command line as in Mahimahi, with
 * its options after colons: "infinite", "droptail:packets=100", "droptail:packets=100:bytes=150000". */
#ifndef RAILYARD_LINK_QUEUE_H
#define RAILYARD_LINK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"

struct xl_queue;

struct xl_queue_discipline {
    const char *name;
    const char *options; /* for error messages: the options it takes; "" = none */
    size_t state_size;   /* bytes of its own state, zeroed at the start: xl_queue_state() */
    /* Sets one option; false if there is none of that name. */
    bool (*set_option)(void *state, const char *key, uint64_t value);
    /* Checks the options together: NULL, or what is missing. */
    const char *(*check)(const void *state);
    /* Takes the packet over: pushes it on the queue's FIFO, or drops it or others with xl_queue_drop. */
    void (*enqueue)(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now);
    /* Hands out the next packet, or NULL if the queue is empty (it may drop on the way). */
    struct xl_link_packet *(*dequeue)(struct xl_queue *queue, uint64_t now);
};

struct xl_queue {
    const struct xl_queue_discipline *discipline;
    struct xl_link_fifo fifo; /* what is queued; sizes count 4 bytes more than the IP length */
    struct xl_link_pool *pool;
    uint64_t dropped_packets;
    uint64_t dropped_bytes;
    char description[96]; /* as mm-link's log prints it: "droptail [packets=100]" */
    void *state;
};

/* Makes a queue from its specification. pool is borrowed and gets what is dropped.
 * NULL and one sentence in error if the discipline or an option is unknown, or without memory. */
struct xl_queue *xl_queue_new(const char *specification, struct xl_link_pool *pool, char *error, size_t error_size);
/* Gives the queued packets back to the pool. */
void xl_queue_free(struct xl_queue *queue);

static inline void xl_queue_enqueue(struct xl_queue *queue, struct xl_link_packet *packet, uint64_t now) {
    queue->discipline->enqueue(queue, packet, now);
}
static inline struct xl_link_packet *xl_queue_dequeue(struct xl_queue *queue, uint64_t now) {
    return queue->discipline->dequeue(queue, now);
}

/* For disciplines: counts the packet as dropped and frees it. */
void xl_queue_drop(struct xl_queue *queue, struct xl_link_packet *packet);

extern const struct xl_queue_discipline xl_queue_infinite;
extern const struct xl_queue_discipline xl_queue_droptail;

#endif
