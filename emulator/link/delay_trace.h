/* A delay that varies with time: lines of "ms,delay_ms", both with decimals if wanted, the times ascending. The delay
 * is a step function: from each time on the line's delay holds, before the first time the first line's.
 *
 * Looped, the last time is the period, as in delivery traces: there the function begins again, and the last line's
 * delay is not used (a single line simply holds). Held, the last delay holds for ever. */
#ifndef RAILYARD_LINK_DELAY_TRACE_H
#define RAILYARD_LINK_DELAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link_delay_step {
    uint64_t at_us;
    uint64_t delay_us;
};

struct link_delay_trace {
    struct link_delay_step *steps; /* ascending */
    size_t count;                  /* at least 1 */
};

/* As link_trace_parse. */
int link_delay_trace_parse(struct link_delay_trace *trace, const char *name, const char *text, size_t length,
                           char *error, size_t error_size);
/* Reads and parses a file. */
int link_delay_trace_load(struct link_delay_trace *trace, const char *path, char *error, size_t error_size);
void link_delay_trace_free(struct link_delay_trace *trace);
/* The delay at trace time t_us; a binary search. */
uint64_t link_delay_trace_at(const struct link_delay_trace *trace, uint64_t t_us, bool hold);

#endif
