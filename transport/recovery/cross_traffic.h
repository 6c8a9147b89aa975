/* How long others' packets (cross traffic) keep a path's own waiting at its bottleneck.
 *
 * A packet takes at least the smallest RTT, and at least the time in which the bottleneck carries what the path
 * delivers meanwhile. What it takes beyond both is due to others:
 *
 *     delay = RTT − max(smallest RTT, bytes delivered since the packet left / capacity)
 *
 * Trains with others' packets in between show less than the capacity (recovery/capacity.h), so the greatest value of
 * the last second counts. On a path that fades that is too much, and the path's own queue looks like others' meanwhile.
 * So the least delay of the last 1.5 s counts, in which a sudden fade has a part from before it, if the capacity is
 * measured anew within a quarter of a second. On a path whose capacity varies within a second, or whose
 * acknowledgements come in bursts, a part of the own queue counts as others': 1 − mean / greatest capacity. No delay
 * is known where no train has measured the capacity for a second, nor where acknowledgements come in bursts further
 * apart than a bucket, as with RTTs above some 400 ms. Bytes and microseconds. */
#ifndef XL_RECOVERY_CROSS_TRAFFIC_H
#define XL_RECOVERY_CROSS_TRAFFIC_H

#include <stdint.h>

#define XL_CROSS_BUCKETS 6

/* Time is cut into buckets of a quarter of a second. The last one is running: a second is 0.75 to 1 s, and 1.5 s are
 * 1.25 to 1.5 s. */
typedef struct {
    uint64_t newest; /* the bucket of the latest acknowledgement: time / bucket */
    struct {
        uint32_t delay_us;    /* 1 + the least; 0 = no acknowledgement */
        uint32_t bytes_per_s; /* the greatest capacity */
    } bucket[XL_CROSS_BUCKETS];
} xl_cross_traffic;

/* A packet was acknowledged after rtt_us. own_bytes: what the path delivered since the packet left, with the packet;
 * capacity_bytes_per_s: as measured with this acknowledgement, 0 = not measured. */
void xl_cross_traffic_acked(xl_cross_traffic *, uint64_t rtt_us, uint64_t min_rtt_us, uint64_t own_bytes,
                            uint64_t capacity_bytes_per_s, uint64_t now);
/* The delay by others' packets; 0 if more than one of six buckets had no acknowledgement, the one that is running among
 * them. */
uint64_t xl_cross_traffic_delay(const xl_cross_traffic *, uint64_t now);

#endif
