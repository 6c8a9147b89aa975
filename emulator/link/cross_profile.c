#include "emulator/link/cross_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define MOST_MS   4294967295.0 /* of a time: as in delivery traces */
#define MOST_MBPS ((double)LINK_CROSS_MOST_BPS / 1e6)

static size_t count_lines(const char *text, size_t length) {
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n' || i + 1 == length;
    return lines;
}

/* NULL, or what is wrong with the line. */
static const char *read_step(const char *line, size_t length, const link_cross_step *before, link_cross_step *step) {
    const char *comma = memchr(line, ',', length);
    double ms, mbps;
    if (!comma || !number_parse_real(line, (size_t)(comma - line), MOST_MS, &ms) ||
        !number_parse_real(comma + 1, length - (size_t)(comma - line) - 1, MOST_MBPS, &mbps))
        return "is not \"ms,mbps\"; write a time in ms and a rate in Mbit/s (at most 10000) on every line";
    step->at_us = (uint64_t)(ms * 1000.0 + 0.5);
    step->rate_bps = (uint64_t)(mbps * 1e6 + 0.5);
    return before && step->at_us <= before->at_us
               ? "does not come after the line before it; times must ascend, sort the profile"
               : NULL;
}

bool link_cross_profile_parse(link_cross_profile *profile, const char *name, const char *text, size_t length,
                              char *error, size_t error_size) {
    size_t lines = count_lines(text, length);
    const char *problem = lines == 0 ? "is not there; write \"ms,mbps\"" : NULL;
    *profile = (link_cross_profile){.steps = calloc(lines + 1, sizeof *profile->steps)};
    if (!profile->steps)
        problem = "finds no memory";
    for (size_t left = length; !problem && profile->count < lines; profile->count += !problem) {
        link_cross_step *step = &profile->steps[profile->count];
        const char *newline = memchr(text, '\n', left);
        size_t n = newline ? (size_t)(newline - text) : left;
        problem = read_step(text, n, profile->count > 0 ? step - 1 : NULL, step);
        text += n + (newline != NULL);
        left -= n + (newline != NULL);
    }
    if (problem) {
        snprintf(error, error_size, "%s:%zu: the line %s", name, profile->count + 1, problem);
        link_cross_profile_free(profile);
    }
    return !problem;
}

void link_cross_profile_free(link_cross_profile *profile) {
    free(profile->steps);
    *profile = (link_cross_profile){0};
}

uint64_t link_cross_profile_at(const link_cross_profile *profile, uint64_t t_us, uint64_t *stays_us) {
    *stays_us = UINT64_MAX;
    if (profile->count == 1)
        return profile->steps[0].rate_bps;
    t_us %= profile->steps[profile->count - 1].at_us;
    size_t low = 0, high = profile->count - 1; /* the first step after t_us, which the last one is */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (profile->steps[middle].at_us <= t_us)
            low = middle + 1;
        else
            high = middle;
    }
    *stays_us = profile->steps[low].at_us - t_us;
    return profile->steps[low > 0 ? low - 1 : 0].rate_bps;
}
