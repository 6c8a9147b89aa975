#include "emulator/link/cross_profile.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/link/text.h"

#define MOST_MS   4294967295.0 /* of a time: as in delivery traces */
#define MOST_MBPS ((double)LINK_CROSS_MOST_BPS / 1e6)

static const char *add_step(void *into, const char *line, size_t length) {
    link_cross_profile *profile = into;
    const char *comma = memchr(line, ',', length);
    double ms, mbps;
    if (!comma || !number_parse_real(line, (size_t)(comma - line), MOST_MS, &ms) ||
        !number_parse_real(comma + 1, length - (size_t)(comma - line) - 1, MOST_MBPS, &mbps))
        return "the line is not \"ms,mbps\"; write a time in ms and a rate in Mbit/s (at most 10000) on every line";
    const link_cross_step step = {(uint64_t)(ms * 1000.0 + 0.5), (uint64_t)(mbps * 1e6 + 0.5)};
    if (profile->count > 0 && step.at_us <= profile->steps[profile->count - 1].at_us)
        return "the line does not come after the line before it; times must ascend, sort the profile";
    link_cross_step *larger = link_text_grown(profile->steps, profile->count, sizeof *larger);
    if (!larger)
        return "the line finds no memory";
    profile->steps = larger;
    larger[profile->count++] = step;
    return NULL;
}

bool link_cross_profile_parse(void *into, const char *name, const char *text, size_t length, char *error,
                              size_t error_size) {
    link_cross_profile *profile = into;
    link_text_lines lines = {name, text, text + length, 0};
    *profile = (link_cross_profile){0};
    const char *problem = link_text_read_lines(&lines, add_step, profile);
    if (!problem && profile->count == 0)
        problem = "the line is not there; write \"ms,mbps\"";
    if (!problem)
        return true;
    link_cross_profile_free(profile);
    return link_text_refuse(&lines, problem, error, error_size);
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
