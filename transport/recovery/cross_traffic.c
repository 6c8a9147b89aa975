#include "recovery/cross_traffic.h"

#include <stddef.h>
#include <string.h>

#include "minmax.h"

#define BUCKET_US        250000
#define CAPACITY_BUCKETS 4 /* the capacity is the greatest of these */

/* Empties the buckets that have passed since the latest acknowledgement. */
static void roll(xl_cross_traffic *s, uint64_t newest) {
    uint64_t passed = xl_min(newest - s->newest, XL_CROSS_BUCKETS);
    for (uint64_t i = 0; i < passed; i++)
        memset(&s->bucket[(newest - i) % XL_CROSS_BUCKETS], 0, sizeof s->bucket[0]);
    s->newest = newest;
}

static uint64_t greatest_capacity(const xl_cross_traffic *s) {
    uint64_t rate = 0;
    for (uint64_t i = 0; i < CAPACITY_BUCKETS; i++)
        rate = xl_max(rate, s->bucket[(s->newest - i) % XL_CROSS_BUCKETS].bytes_per_s);
    return rate;
}

void xl_cross_traffic_acked(xl_cross_traffic *s, uint64_t rtt_us, uint64_t min_rtt_us, uint64_t own_bytes,
                            uint64_t capacity_bytes_per_s, uint64_t now) {
    uint64_t number = now / BUCKET_US;
    roll(s, number);
    size_t at = number % XL_CROSS_BUCKETS;
    s->bucket[at].bytes_per_s = (uint32_t)xl_max(s->bucket[at].bytes_per_s, xl_min(capacity_bytes_per_s, UINT32_MAX));
    uint64_t rate = greatest_capacity(s);
    uint64_t own_us = rate > 0 ? xl_max(own_bytes * 1000000 / rate, min_rtt_us) : rtt_us;
    uint64_t delay_us = rtt_us > own_us ? xl_min(rtt_us - own_us, UINT32_MAX - 1) : 0;
    if (s->bucket[at].delay_us == 0 || s->bucket[at].delay_us > delay_us + 1)
        s->bucket[at].delay_us = (uint32_t)delay_us + 1;
}

uint64_t xl_cross_traffic_delay(const xl_cross_traffic *s, uint64_t now) {
    uint64_t number = now / BUCKET_US, least = UINT32_MAX;
    size_t known = 0;
    for (uint64_t i = 0; i < XL_CROSS_BUCKETS; i++) {
        uint64_t delay_us = s->bucket[(number - i) % XL_CROSS_BUCKETS].delay_us;
        if (number - i > s->newest || delay_us == 0)
            continue;
        known++;
        least = xl_min(least, delay_us - 1);
    }
    return known + 1 >= XL_CROSS_BUCKETS ? least : 0;
}
