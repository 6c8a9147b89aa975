/* A delay that varies with time: lines of "ms,delay_ms", decimals allowed, times ascending. The delay is a step
 * function: each line's delay holds from its time to the next line's, and the first line's also before.
 *
 * At the end it loops or holds. Looped, the last time is the period, as in delivery traces: the function starts again
 * there, and the last line's delay is not used, unless it is the only line. Held, the last delay stays. */
#ifndef RAILYARD_LINK_DELAY_TRACE_H
#define RAILYARD_LINK_DELAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t at_us;
    uint64_t delay_us;
} link_delay_step;

typedef struct {
    link_delay_step *steps; /* ascending */
    size_t count;           /* at least 1 */
} link_delay_trace;

/* As link_trace_parse, into a link_delay_trace. */
bool link_delay_trace_parse(void *trace, const char *name, const char *text, size_t length, char *error,
                            size_t error_size);
void link_delay_trace_free(link_delay_trace *trace);
/* The delay at trace time t_us; a binary search. */
uint64_t link_delay_trace_at(const link_delay_trace *trace, uint64_t t_us, bool hold);

#endif
