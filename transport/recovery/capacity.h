/* The capacity of a path from the spacing of acknowledgements (packet trains; Jain and Routhier, IEEE JSAC 1986).
 *
 * A train is a sequence of packets that were sent without the path becoming idle. If its acknowledgements are spread
 * further than its packets were, the bottleneck was busy throughout, and its capacity is
 *
 *     rate = bytes acknowledged after the first packet / time since the acknowledgement of the first packet
 *
 * A train that was not spread shows only that the capacity is at least that rate. Unlike an average over time, the
 * estimate does not fall while the path is idle. Bytes and microseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t begun_at, first_sent; /* when the train's first packet was acknowledged and sent; 0: no train yet */
    uint64_t bytes;                /* acknowledged after the first packet */
    uint64_t before;               /* bytes_per_s when the train began */
    uint64_t bytes_per_s;          /* 0 = unknown */
    uint64_t measured_at;          /* time of the latest measurement */
    bool is_bound;                 /* bytes_per_s is a lower bound: the latest measurement is of a train that was not
                                    * spread */
} xl_capacity;

/* A packet that was sent at sent_at was acknowledged. Bytes have been in flight without a break since busy_since. */
void xl_capacity_acked(xl_capacity *, uint64_t bytes, uint64_t sent_at, uint64_t busy_since, uint64_t now);
/* Time in which `bytes` pass the bottleneck; 0 while the capacity is unknown. A lower bound counts fourfold. */
uint64_t xl_capacity_time(const xl_capacity *, uint64_t bytes);
