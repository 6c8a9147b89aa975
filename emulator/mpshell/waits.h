/* How long programs under test could not run: COMMAND's processes and watched processes outside, sampled once per slot.
 * They wait for a core (the kernel's run delay, second value of /proc/PID/task/TID/schedstat), or are blocked: stopped
 * or in uninterruptible sleep, for example because they wait for a disk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "emulator/mpshell/series.h"

#define MP_MAX_WATCHED 8

typedef struct mp_waits mp_waits;

typedef struct {
    bool known;       /* the kernel counts run delay */
    mp_series series; /* run delay of all threads plus blocked time; free with mp_series_free() */
    double run_delay_s;
    double blocked_s; /* duration of slots at whose end any thread was blocked */
} mp_waits_found;

/* Samples the descendants of init, and the watched processes with theirs. Records nothing before mp_waits_begin().
 * NULL: no memory, or no thread could start. */
mp_waits *mp_waits_start(pid_t init, const pid_t *watched, size_t count);
/* t0_us: CLOCK_MONOTONIC. */
void mp_waits_begin(mp_waits *waits, uint64_t t0_us);
/* Ends the thread and frees it. Without waits (NULL) *found is zero. */
void mp_waits_stop(mp_waits *waits, mp_waits_found *found);
