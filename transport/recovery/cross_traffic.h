/* Cross traffic: how long others' packets delay those of a path at its bottleneck.
 *
 * A packet takes at least the smallest RTT, and at least the time in which the bottleneck carries what the path
 * delivers in the meantime. The rest of its RTT is due to others:
 *
 *     delay = RTT − max(smallest RTT, bytes delivered since the packet left / capacity)
 *
 * A train with others' packets in between measures less than the capacity (recovery/capacity.h), so the capacity is the
 * greatest value of the last second. After a fade that value is too large for a second, in which the path's own queue
 * looks like others'. So the delay is the least of the last 1.5 s: it then still includes a time before the fade, if
 * the capacity is measured again within a quarter of a second. On a path whose capacity varies within a second, or
 * whose acknowledgements come in bursts, a part of the path's own queue counts as others': 1 − mean / greatest
 * capacity. The delay is unknown if no train has measured the capacity for a second, or if acknowledgements come in
 * bursts further apart than a bucket, as with RTTs above some 400 ms. Bytes and microseconds. */
#pragma once

#include <stdint.h>

#define XL_CROSS_BUCKETS 6

/* Time is divided into buckets of a quarter of a second. The newest one is incomplete: "a second" is 0.75 to 1 s, and
 * "1.5 s" are 1.25 to 1.5 s. */
typedef struct {
    uint64_t newest; /* number of the bucket of the latest acknowledgement: time / 250 ms */
    struct {
        uint32_t delay_us;    /* 1 + the least delay; 0: no acknowledgement */
        uint32_t bytes_per_s; /* the greatest capacity */
    } bucket[XL_CROSS_BUCKETS];
} xl_cross_traffic;

/* A packet was acknowledged after rtt_us. own_bytes: what the path has delivered since the packet left, including the
 * packet. capacity_bytes_per_s: measured with this acknowledgement; 0: not measured. */
void xl_cross_traffic_acked(xl_cross_traffic *, uint64_t rtt_us, uint64_t min_rtt_us, uint64_t own_bytes,
                            uint64_t capacity_bytes_per_s, uint64_t now);
/* Returns the delay by others' packets. 0: none, or unknown, because more than one of the six buckets (the newest one
 * included) had no acknowledgement. */
uint64_t xl_cross_traffic_delay(const xl_cross_traffic *, uint64_t now);
