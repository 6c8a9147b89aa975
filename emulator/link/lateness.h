/* The fidelity histogram: how much later than scheduled packets departed. Exact below 128 us, within 1.6 % above. The
 * maximum and the count over 1 ms are exact. */
#pragma once

#include <stdint.h>

#define LINK_LATENESS_BUCKETS 2048u /* up to 2^37 us, some 38 hours; more is counted in the last bucket */

typedef struct {
    uint64_t count;
    uint64_t over_1ms; /* later than 1000 us */
    uint64_t max_us;
    uint64_t buckets[LINK_LATENESS_BUCKETS];
} link_lateness;

void link_lateness_record(link_lateness *lateness, uint64_t late_us);
/* Adds the records of `from`. */
void link_lateness_merge(link_lateness *into, const link_lateness *from);
/* Returns the smallest value that at least `fraction` (0 to 1) of the records do not exceed, rounded up to the end of
 * its bucket; 0 without records. */
uint64_t link_lateness_quantile(const link_lateness *lateness, double fraction);
