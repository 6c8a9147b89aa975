/* Queues of a link and their disciplines, which decide what is dropped. A discipline is one file. The command line
 * names it as in Mahimahi, with options after colons: "infinite", "droptail:packets=100",
 * "codel:target=5:interval=100". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"
#include "emulator/link/rng.h"

#define LINK_QUEUE_DEFAULT "infinite"

typedef struct link_queue link_queue;

typedef enum {
    LINK_QUEUE_COUNT, /* a whole number */
    LINK_QUEUE_MS,    /* ms with decimals; stored as us */
} link_queue_unit;

typedef struct {
    const char *name;
    size_t offset; /* of an uint64_t in the discipline's state */
    link_queue_unit unit;
    uint64_t least, most; /* as stored */
    uint64_t standard;    /* the default */
} link_queue_option;

typedef struct {
    const char *name;
    const link_queue_option *options; /* ends with a NULL name; NULL: none */
    size_t state_size;                /* bytes of its state: zeroed, then the options' defaults are set */
    /* Checks the options together. Returns NULL, or a phrase that says what is missing. */
    const char *(*check)(const void *state);
    /* Prepares the state after the check. False: no memory. */
    bool (*start)(link_queue *queue);
    /* Frees what start allocated, and packets that are not in the queue's FIFO. */
    void (*stop)(link_queue *queue);
    /* Owns the packet from now on: pushes it to the queue's FIFO (or its own), or drops packets by link_queue_drop. */
    void (*enqueue)(link_queue *queue, link_packet *packet, uint64_t now);
    /* Returns the next packet, after drops if there are any, or NULL if the queue is empty. */
    link_packet *(*dequeue)(link_queue *queue, uint64_t now);
    /* Whether a packet that brings the queue to this size is kept. NULL: always, or not known in advance. */
    bool (*keeps)(const link_queue *queue, size_t packets, uint64_t bytes);
} link_queue_discipline;

struct link_queue {
    const link_queue_discipline *discipline;
    size_t packets; /* in the queue, the new one included while enqueue runs */
    uint64_t bytes; /* the same in bytes; each packet counts its IP length + 4 */
    link_fifo fifo; /* for disciplines of one FIFO */
    link_pool *pool;
    link_rng rng;
    uint64_t dropped_packets;
    uint64_t dropped_bytes;
    /* The part of these counts that others' traffic has. */
    size_t cross_packets; /* in the queue */
    uint64_t dropped_cross_packets;
    uint64_t dropped_cross_bytes;
    char description[192]; /* as mm-link's log prints it: "droptail [packets=100]" */
    void *state;
};

/* Makes a queue from its specification. pool is borrowed; dropped packets return to it. seed: for the discipline's
 * random choices. Returns NULL with one sentence in error if the discipline or an option is invalid, or there is no
 * memory. */
link_queue *link_queue_new(const char *specification, link_pool *pool, uint64_t seed, char *error, size_t error_size);
/* Frees the queue and returns its packets to the pool. */
void link_queue_free(link_queue *queue);

/* packet->arrival_us must be `now`. */
static inline void link_queue_enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    queue->packets++;
    queue->bytes += link_packet_bytes(packet);
    queue->cross_packets += packet->is_cross;
    queue->discipline->enqueue(queue, packet, now);
}
static inline link_packet *link_queue_dequeue(link_queue *queue, uint64_t now) {
    link_packet *packet = queue->discipline->dequeue(queue, now);
    if (packet) {
        queue->packets--;
        queue->bytes -= link_packet_bytes(packet);
        queue->cross_packets -= packet->is_cross;
    }
    return packet;
}

/* Whether the queue has no limit: traffic that does not slow down would fill the memory. NULL is the default queue. */
bool link_queue_is_infinite(const char *specification);

/* A `dequeue` that takes the oldest packet. */
link_packet *link_queue_oldest(link_queue *queue, uint64_t now);
/* Called by disciplines: counts the packet as dropped and frees it. */
void link_queue_drop(link_queue *queue, link_packet *packet);

/* Limits in packets and bytes, for several disciplines; 0 = no limit. */
typedef struct {
    uint64_t packets;
    uint64_t bytes; /* each packet counts its IP length + 4 */
} link_queue_limits;
/* The options `packets` (default: standard_packets) and `bytes` of a state with the member `limits`. */
#define LINK_QUEUE_LIMIT_OPTIONS(type, standard_packets)                                                               \
    {"packets", offsetof(type, limits.packets), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, standard_packets}, {       \
        "bytes", offsetof(type, limits.bytes), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, 0                           \
    }
#define LINK_QUEUE_LIMIT_MOST UINT64_C(1000000000000)
static inline bool link_queue_limits_allow(const link_queue_limits *limits, size_t packets, uint64_t bytes) {
    return (limits->packets == 0 || packets <= limits->packets) && (limits->bytes == 0 || bytes <= limits->bytes);
}
/* Whether the queue exceeds its limits. */
static inline bool link_queue_exceeds(const link_queue *queue, const link_queue_limits *limits) {
    return !link_queue_limits_allow(limits, queue->packets, queue->bytes);
}

/* All disciplines; ends with NULL. The build generates the table from the definitions in this folder:
 * `const link_queue_discipline link_queue_NAME`. */
extern const link_queue_discipline *const link_queue_disciplines[];
