/* A step function of time, read from a file: lines of "ms,value", decimals allowed, times ascending. Each line's value
 * holds from its time to the next line's, and the first line's also before.
 *
 * At the end it loops or holds. In a loop the last time is the period, as in delivery traces: the function starts again
 * there, and the last line's value is used only if it is the only line. Held, the last value stays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/text.h"

#define LINK_CROSS_MOST_BPS UINT64_C(10000000000)

typedef struct {
    uint64_t at_us;
    uint64_t value; /* us of a delay, bit/s of a rate */
} link_step;

typedef struct {
    link_step *steps; /* ascending */
    size_t count;     /* at least 1 */
} link_steps;

/* Of link_steps: a delay trace, "ms,delay_ms", and a profile of others' traffic, "ms,mbps". */
extern const link_text_form link_delay_trace_form, link_cross_profile_form;
void link_steps_free(void *steps);
/* Returns the value at trace time t_us. *stays_us: how long it stays; NULL is allowed. A binary search. */
uint64_t link_steps_at(const link_steps *steps, uint64_t t_us, bool hold, uint64_t *stays_us);
