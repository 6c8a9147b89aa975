#include "emulator/link/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MS 4294967295.0 /* largest time, as in delivery traces */

/* most: largest value as written in the file. unit: factor from the file's unit to us or bit/s. */
static const char *add_step(link_steps *f, const char *line, size_t length, double most, double unit,
                            const char *wrong) {
    const char *comma = memchr(line, ',', length);
    double ms, value;
    if (!comma || !number_parse_real(line, (size_t)(comma - line), MOST_MS, &ms) ||
        !number_parse_real(comma + 1, length - (size_t)(comma - line) - 1, most, &value))
        return wrong;
    const link_step step = {(uint64_t)(ms * 1000.0 + 0.5), (uint64_t)llround(value * unit)};
    if (f->count > 0 && step.at_us <= f->steps[f->count - 1].at_us)
        return "the line does not come after the line before it; times must ascend, sort the lines";
    link_step *larger = link_text_grown(f->steps, f->count, sizeof *larger);
    if (!larger)
        return link_text_no_memory;
    f->steps = larger;
    larger[f->count++] = step;
    return NULL;
}

static const char *add_delay(void *steps, const char *line, size_t length) {
    return add_step(
        steps, line, length, LINK_MS_MOST, 1e3,
        "the line is not \"ms,delay_ms\"; write a time and a delay (at most 3600000), both in ms, on every line");
}

static const char *add_rate(void *steps, const char *line, size_t length) {
    return add_step(
        steps, line, length, (double)LINK_CROSS_MOST_BPS / 1e6, 1e6,
        "the line is not \"ms,mbps\"; write a time in ms and a rate in Mbit/s (at most 10000) on every line");
}

const link_text_form link_delay_trace_form = {sizeof(link_steps), add_delay, link_steps_free,
                                              "the delay trace is empty; it needs at least one line \"ms,delay_ms\"",
                                              NULL};

const link_text_form link_cross_profile_form = {sizeof(link_steps), add_rate, link_steps_free,
                                                "the line is not there; write \"ms,mbps\"", NULL};

void link_steps_free(void *steps) {
    link_steps *f = steps;
    free(f->steps);
    *f = (link_steps){0};
}

uint64_t link_steps_at(const link_steps *f, uint64_t t_us, bool hold, uint64_t *stays_us) {
    if (!hold && f->count > 1)
        t_us %= f->steps[f->count - 1].at_us;
    size_t low = 0, high = f->count; /* the first step after t_us lies in [low, high] */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->steps[middle].at_us <= t_us)
            low = middle + 1;
        else
            high = middle;
    }
    if (stays_us)
        *stays_us = f->count == 1 || low == f->count ? UINT64_MAX : f->steps[low].at_us - t_us;
    return f->steps[low > 0 ? low - 1 : 0].value;
}
