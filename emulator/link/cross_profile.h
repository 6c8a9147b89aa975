/* A rate over time, for traffic of others: lines of "ms,mbps", decimals allowed, times ascending. It is a step
 * function: each line's rate holds from its time to the next line's, and the first line's also before. The last time is
 * the period, as in delivery traces: the function starts again there, and the last line's rate is not used, unless it
 * is the only line. */
#ifndef RAILYARD_LINK_CROSS_PROFILE_H
#define RAILYARD_LINK_CROSS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_CROSS_MOST_BPS UINT64_C(10000000000)

typedef struct {
    uint64_t at_us;
    uint64_t rate_bps;
} link_cross_step;

typedef struct {
    link_cross_step *steps; /* ascending */
    size_t count;           /* at least 1 */
} link_cross_profile;

/* As link_trace_parse, into a link_cross_profile. */
bool link_cross_profile_parse(void *profile, const char *name, const char *text, size_t length, char *error,
                              size_t error_size);
void link_cross_profile_free(link_cross_profile *profile);
/* The rate at a time of the profile, and how long it stays; a binary search. */
uint64_t link_cross_profile_at(const link_cross_profile *profile, uint64_t t_us, uint64_t *stays_us);

#endif
