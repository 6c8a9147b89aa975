#include "emulator/link/delay_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/link/text.h"

#define MOST_MS 4294967295.0 /* of a time: as in delivery traces */

static bool append(link_delay_trace *trace, size_t *capacity, const link_delay_step *step) {
    if (trace->count == *capacity) {
        size_t wanted = *capacity == 0 ? 256 : *capacity * 2;
        link_delay_step *grown = realloc(trace->steps, wanted * sizeof *grown);
        if (!grown)
            return false;
        trace->steps = grown;
        *capacity = wanted;
    }
    trace->steps[trace->count++] = *step;
    return true;
}

static bool read_step(const char *line, size_t length, link_delay_step *step) {
    const char *comma = memchr(line, ',', length);
    double ms;
    if (!comma || !number_parse_real(line, (size_t)(comma - line), MOST_MS, &ms) ||
        !number_parse_ms(comma + 1, length - (size_t)(comma - line) - 1, LINK_MS_MOST, &step->delay_us))
        return false;
    step->at_us = (uint64_t)(ms * 1000.0 + 0.5);
    return true;
}

static const char *take_line(link_delay_trace *trace, size_t *capacity, const char *line, size_t length) {
    link_delay_step step;
    if (!read_step(line, length, &step))
        return "is not \"ms,delay_ms\"; write a time and a delay (at most 3600000), both in ms, on every line";
    if (trace->count > 0 && step.at_us <= trace->steps[trace->count - 1].at_us)
        return "does not come after the line before it; times must ascend, sort the trace";
    return append(trace, capacity, &step) ? NULL : "finds no memory";
}

bool link_delay_trace_parse(link_delay_trace *trace, const char *name, const char *text, size_t length, char *error,
                            size_t error_size) {
    const char *at = text, *end = text + length;
    size_t capacity = 0, number = 0;
    memset(trace, 0, sizeof *trace);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((!newline ? end : newline) - at);
        const char *problem = take_line(trace, &capacity, at, n);
        number++;
        if (problem) {
            snprintf(error, error_size, "%s:%zu: the line %s", name, number, problem);
            link_delay_trace_free(trace);
            return false;
        }
        at = !newline ? end : newline + 1;
    }
    if (trace->count == 0) {
        snprintf(error, error_size, "%s:1: the delay trace is empty; it needs at least one line \"ms,delay_ms\"", name);
        return false;
    }
    return true;
}

void link_delay_trace_free(link_delay_trace *trace) {
    free(trace->steps);
    memset(trace, 0, sizeof *trace);
}

uint64_t link_delay_trace_at(const link_delay_trace *trace, uint64_t t_us, bool hold) {
    uint64_t period = trace->steps[trace->count - 1].at_us;
    if (!hold && trace->count > 1)
        t_us %= period;
    size_t low = 0, high = trace->count; /* the first step after t_us lies in [low, high] */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->steps[middle].at_us <= t_us)
            low = middle + 1;
        else
            high = middle;
    }
    return trace->steps[low > 0 ? low - 1 : 0].delay_us;
}
