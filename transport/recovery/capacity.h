/* The capacity of a path from the spacing of acknowledgements (packet trains; Jain and Routhier, IEEE JSAC 1986).
 *
 * A train is what left without a break in which the path was idle. If its acknowledgements are spread further than its
 * packets were, the bottleneck was busy throughout, and
 *
 *     rate = bytes acknowledged after the first packet / time since the acknowledgement of the first packet
 *
 * is its capacity. A train that was not spread shows only that the capacity is at least that rate. Unlike an average
 * over time it is no smaller on a path that is idle most of the time. Bytes and microseconds. */
#ifndef XL_RECOVERY_CAPACITY_H
#define XL_RECOVERY_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t begun_at, first_sent; /* acknowledgement and departure of the train's first packet; 0 = none yet */
    uint64_t bytes;                /* acknowledged after it */
    uint64_t before;               /* the rate when the train began */
    uint64_t bytes_per_s;          /* 0 = unknown */
    uint64_t measured_at;          /* when a train last said so; a slow or short train says nothing */
    bool is_bound;                 /* at least that: the latest train was faster, and not spread */
} xl_capacity;

/* A packet that left at sent_at was acknowledged. busy_since: bytes were in flight without a break since then. */
void xl_capacity_acked(xl_capacity *, uint64_t bytes, uint64_t sent_at, uint64_t busy_since, uint64_t now);
/* The time in which so many bytes pass the bottleneck; 0 while nothing is known. A bound counts as a multiple of it. */
uint64_t xl_capacity_time(const xl_capacity *, uint64_t bytes);

#endif
