#include "emulator/link/lateness.h"

#include <stddef.h>

/* Values below 128 have a bucket each. Above, every power of two is split into 64: bucket = 64 * e + (v >> e), where
 * e is chosen so that v >> e lies in 64..127. */
static size_t bucket_of(uint64_t v) {
    if (v < 128)
        return (size_t)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v) - 6u;
    size_t bucket = 64u * e + (size_t)(v >> e);
    return bucket < LINK_LATENESS_BUCKETS ? bucket : LINK_LATENESS_BUCKETS - 1;
}

static uint64_t highest_in(size_t bucket) {
    if (bucket < 128)
        return bucket;
    unsigned e = (unsigned)(bucket / 64 - 1);
    return ((64u + bucket % 64 + 1) << e) - 1;
}

void link_lateness_record(link_lateness *lateness, uint64_t late_us) {
    lateness->count++;
    lateness->over_1ms += late_us > 1000;
    if (late_us > lateness->max_us)
        lateness->max_us = late_us;
    lateness->buckets[bucket_of(late_us)]++;
}

void link_lateness_merge(link_lateness *into, const link_lateness *from) {
    into->count += from->count;
    into->over_1ms += from->over_1ms;
    into->max_us = from->max_us > into->max_us ? from->max_us : into->max_us;
    for (size_t i = 0; i < LINK_LATENESS_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t link_lateness_quantile(const link_lateness *lateness, double fraction) {
    uint64_t seen = 0;
    for (size_t i = 0; i < LINK_LATENESS_BUCKETS && lateness->count > 0; i++) {
        seen += lateness->buckets[i];
        if (seen > 0 && (double)seen >= fraction * (double)lateness->count) {
            uint64_t value = highest_in(i);
            return value < lateness->max_us && i + 1 < LINK_LATENESS_BUCKETS ? value : lateness->max_us;
        }
    }
    return lateness->max_us;
}
