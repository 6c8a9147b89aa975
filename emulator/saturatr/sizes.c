#include "emulator/saturatr/sizes.h"

#include <stdlib.h>
#include <string.h>

#define MISSING  INT64_MAX
#define LEFT_OUT (INT64_MAX - 1)     /* arrived, but is ignored */
#define MOST_US  INT64_C(3600000000) /* largest delay that links accept */

bool sat_sizes_are_allowed(const sat_sizes *sizes, uint64_t packet_bytes) {
    if (sizes->count == 0 || sizes->count > SAT_SIZES_MOST || sizes->bytes[0] < SAT_SIZE_LEAST)
        return false;
    for (uint32_t i = 1; i < sizes->count; i++)
        if (sizes->bytes[i] <= sizes->bytes[i - 1])
            return false;
    return sizes->bytes[sizes->count - 1] == packet_bytes && packet_bytes <= SAT_SIZE_MOST;
}

uint32_t sat_sizes_of(const sat_sizes *sizes, uint64_t seq) {
    return sizes->bytes[seq % sizes->count];
}

bool sat_latencies_init(sat_latencies *latencies, const sat_sizes *sizes, uint64_t sent, uint64_t duration_us) {
    const uint64_t rounds = sent / sizes->count + (sent % sizes->count > 0);
    *latencies = (sat_latencies){.sizes = sizes, .duration_us = duration_us, .sent = sent, .rounds = rounds};
    if (rounds > SIZE_MAX / sizeof *latencies->delays_us / sizes->count)
        return false;
    latencies->delays_us = calloc(rounds > 0 ? rounds * sizes->count : 1, sizeof *latencies->delays_us);
    for (uint64_t i = 0; latencies->delays_us && i < rounds * sizes->count; i++)
        latencies->delays_us[i] = MISSING;
    return latencies->delays_us;
}

void sat_latencies_free(sat_latencies *latencies) {
    free(latencies->delays_us);
    memset(latencies, 0, sizeof *latencies);
}

void sat_latencies_add(sat_latencies *latencies, uint64_t seq, uint32_t ip_bytes, int64_t sent_us,
                       int64_t received_us) {
    if (seq >= latencies->sent)
        return; /* the sender did not send it */
    const uint64_t size = seq % latencies->sizes->count;
    int64_t *delay = &latencies->delays_us[size * latencies->rounds + seq / latencies->sizes->count];
    /* Wraps, because a hostile peer may send any times. */
    const int64_t given = (int64_t)((uint64_t)received_us - (uint64_t)sent_us);
    if (*delay != MISSING)
        return; /* a copy */
    *delay = LEFT_OUT;
    if (sent_us < 0 || (uint64_t)sent_us >= latencies->duration_us) {
        latencies->outside++;
    } else if (ip_bytes != latencies->sizes->bytes[size] || given > MOST_US || given < -MOST_US) {
        latencies->left_out++;
    } else {
        *delay = given;
        latencies->arrived[size]++;
    }
}

static int compare(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool sat_latencies_median(sat_latencies *latencies, uint32_t which, double *delay_us) {
    const uint64_t n = latencies->arrived[which];
    for (uint32_t s = 0; !latencies->sorted && s < latencies->sizes->count; s++)
        qsort(latencies->delays_us + s * latencies->rounds, latencies->rounds, sizeof *latencies->delays_us, compare);
    latencies->sorted = true;
    const int64_t *delays = latencies->delays_us + which * latencies->rounds; /* missing ones are at the end */
    if (n > 0)
        *delay_us = (double)(delays[(n - 1) / 2] + delays[n / 2]) / 2.0;
    return n > 0;
}

double sat_latencies_at(sat_latencies *latencies, uint32_t bytes) {
    const sat_sizes *sizes = latencies->sizes;
    uint32_t above = 0;
    double reference = 0, low = 0, high = 0;
    while (above + 1 < sizes->count && sizes->bytes[above] < bytes)
        above++;
    const uint32_t below = above > 0 && bytes < sizes->bytes[above] ? above - 1 : above;
    sat_latencies_median(latencies, sizes->count - 1, &reference);
    sat_latencies_median(latencies, below, &low);
    sat_latencies_median(latencies, above, &high);
    const double share =
        below == above ? 0.0 : (double)(bytes - sizes->bytes[below]) / (sizes->bytes[above] - sizes->bytes[below]);
    return low + share * (high - low) - reference;
}
