/* The CoDel algorithm (RFC 8289, section 5) over one FIFO, for codel and for each flow of fq_codel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/link/queue.h"

#define LINK_CODEL_TARGET_US   5000u
#define LINK_CODEL_INTERVAL_US 100000u

typedef struct {
    uint64_t target_us;   /* the delay that a standing queue may have */
    uint64_t interval_us; /* about a worst-case RTT */
} link_codel_parameters;
#define LINK_CODEL_OPTIONS(type, member)                                                                               \
    {"target", offsetof(type, member.target_us), LINK_QUEUE_MS, 1, UINT64_C(3600000000), LINK_CODEL_TARGET_US}, {      \
        "interval", offsetof(type, member.interval_us), LINK_QUEUE_MS, 1, UINT64_C(3600000000), LINK_CODEL_INTERVAL_US \
    }

/* The names of RFC 8289's pseudocode; all zero at the start. */
typedef struct {
    uint64_t first_above_time; /* when the delay will have been above target for an interval; 0: it is below */
    uint64_t drop_next;
    uint32_t count; /* drops in this dropping state, plus those of a recent one */
    uint32_t lastcount;
    bool dropping;
} link_codel;

/* Returns the next packet of the FIFO after CoDel's drops, which the queue counts; NULL if the FIFO is empty. */
link_packet *link_codel_dequeue(link_codel *codel, const link_codel_parameters *parameters, link_queue *queue,
                                link_fifo *fifo, uint64_t now);
