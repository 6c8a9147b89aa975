/* Queues of a link, and the disciplines that decide what they drop.
 *
 * A discipline is one file. It is named on the command line as in Mahimahi, with
 * its options after colons: "infinite", "droptail:packets=100", "codel:target=5:interval=100". */
#ifndef RAILYARD_LINK_QUEUE_H
#define RAILYARD_LINK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"
#include "emulator/link/rng.h"

#define LINK_QUEUE_DEFAULT "infinite"

struct link_queue;

enum link_queue_unit {
    LINK_QUEUE_COUNT, /* a whole number */
    LINK_QUEUE_MS,    /* ms with decimals; held as us */
};

struct link_queue_option {
    const char *name;
    size_t offset; /* of an uint64_t in the discipline's state */
    enum link_queue_unit unit;
    uint64_t least, most; /* as held */
    uint64_t standard;    /* what it is when it is not given */
};

struct link_queue_discipline {
    const char *name;
    const struct link_queue_option *options; /* ends with a NULL name; NULL: none */
    size_t state_size;                       /* bytes of its own state, zeroed, then the options' standards are set */
    /* Checks the options together: NULL, or what is missing. */
    const char *(*check)(const void *state);
    /* Prepares the state, after the check; false: no memory. */
    bool (*start)(struct link_queue *queue);
    /* Gives back what start took, and packets that are not in the queue's FIFO. */
    void (*stop)(struct link_queue *queue);
    /* Takes the packet over: pushes it on the queue's FIFO (or its own), or drops it or others with link_queue_drop. */
    void (*enqueue)(struct link_queue *queue, struct link_packet *packet, uint64_t now);
    /* Hands out the next packet, or NULL if the queue is empty (it may drop on the way). */
    struct link_packet *(*dequeue)(struct link_queue *queue, uint64_t now);
    /* Whether a queue that would hold this much with a packet keeps that packet. NULL: it cannot be told beforehand. */
    bool (*keeps)(const struct link_queue *queue, size_t packets, uint64_t bytes);
};

struct link_queue {
    const struct link_queue_discipline *discipline;
    size_t packets;        /* what is queued, wherever the discipline keeps it; while enqueue runs, with the new one */
    uint64_t bytes;        /* sizes count 4 bytes more than the IP length */
    struct link_fifo fifo; /* for disciplines of one FIFO */
    struct link_pool *pool;
    struct link_rng rng;
    uint64_t dropped_packets;
    uint64_t dropped_bytes;
    char description[192]; /* as mm-link's log prints it: "droptail [packets=100]" */
    void *state;
};

/* Makes a queue from its specification. pool is borrowed and gets what is dropped; seed is of what the discipline
 * draws. NULL and one sentence in error if the discipline or an option is unknown, or without memory. */
struct link_queue *link_queue_new(const char *specification, struct link_pool *pool, uint64_t seed, char *error,
                                  size_t error_size);
/* Gives the queued packets back to the pool. */
void link_queue_free(struct link_queue *queue);

/* packet->arrival_us is the time of its arrival, now. */
static inline void link_queue_enqueue(struct link_queue *queue, struct link_packet *packet, uint64_t now) {
    queue->packets++;
    queue->bytes += link_packet_bytes(packet);
    queue->discipline->enqueue(queue, packet, now);
}
static inline struct link_packet *link_queue_dequeue(struct link_queue *queue, uint64_t now) {
    struct link_packet *packet = queue->discipline->dequeue(queue, now);
    if (packet) {
        queue->packets--;
        queue->bytes -= link_packet_bytes(packet);
    }
    return packet;
}

/* For disciplines: counts the packet as dropped and frees it. */
void link_queue_drop(struct link_queue *queue, struct link_packet *packet);

/* Limits of packets and bytes that several disciplines have; 0 = no limit. */
struct link_queue_limits {
    uint64_t packets;
    uint64_t bytes; /* counts 4 bytes a packet more than its IP length */
};
/* The two options of a state that has the member `limits`; packets is limited to `standard` unless told otherwise. */
#define LINK_QUEUE_LIMIT_OPTIONS(type, standard_packets)                                                               \
    {"packets", offsetof(type, limits.packets), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, standard_packets}, {       \
        "bytes", offsetof(type, limits.bytes), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, 0                           \
    }
#define LINK_QUEUE_LIMIT_MOST UINT64_C(1000000000000)
static inline bool link_queue_limits_allow(const struct link_queue_limits *limits, size_t packets, uint64_t bytes) {
    return (limits->packets == 0 || packets <= limits->packets) && (limits->bytes == 0 || bytes <= limits->bytes);
}
/* Whether the queue holds more than it may. */
static inline bool link_queue_exceeds(const struct link_queue *queue, const struct link_queue_limits *limits) {
    return !link_queue_limits_allow(limits, queue->packets, queue->bytes);
}

/* All of them, ends with NULL: the build makes the table of what the files of this folder define as
 * `const struct link_queue_discipline link_queue_NAME`. */
extern const struct link_queue_discipline *const link_queue_disciplines[];

#endif
