#include "emulator/link/delay_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/link/text.h"

#define MOST_MS 4294967295.0 /* of a time: as in delivery traces */

static bool read_step(const char *line, size_t length, link_delay_step *step) {
    const char *comma = memchr(line, ',', length);
    double ms;
    if (!comma || !number_parse_real(line, (size_t)(comma - line), MOST_MS, &ms) ||
        !number_parse_ms(comma + 1, length - (size_t)(comma - line) - 1, LINK_MS_MOST, &step->delay_us))
        return false;
    step->at_us = (uint64_t)(ms * 1000.0 + 0.5);
    return true;
}

static const char *add_step(void *into, const char *line, size_t length) {
    link_delay_trace *trace = into;
    link_delay_step step;
    if (!read_step(line, length, &step))
        return "the line is not \"ms,delay_ms\"; write a time and a delay (at most 3600000), both in ms, on every line";
    if (trace->count > 0 && step.at_us <= trace->steps[trace->count - 1].at_us)
        return "the line does not come after the line before it; times must ascend, sort the trace";
    link_delay_step *larger = link_text_grown(trace->steps, trace->count, sizeof *larger);
    if (!larger)
        return "the line finds no memory";
    trace->steps = larger;
    larger[trace->count++] = step;
    return NULL;
}

bool link_delay_trace_parse(void *into, const char *name, const char *text, size_t length, char *error,
                            size_t error_size) {
    link_delay_trace *trace = into;
    link_text_lines lines = {name, text, text + length, 0};
    memset(trace, 0, sizeof *trace);
    const char *problem = link_text_read_lines(&lines, add_step, trace);
    if (!problem && trace->count == 0)
        problem = "the delay trace is empty; it needs at least one line \"ms,delay_ms\"";
    if (!problem)
        return true;
    link_delay_trace_free(trace);
    return link_text_refuse(&lines, problem, error, error_size);
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
