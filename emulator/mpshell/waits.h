/* How long programs under test could not run: COMMAND's processes and watched processes outside, sampled once a slot.
 * They wait for a core (the kernel's run delay, second figure of /proc/PID/task/TID/schedstat), or are blocked: stopped
 * or in uninterruptible sleep, as while they wait for a disk. */
#ifndef RAILYARD_MPSHELL_WAITS_H
#define RAILYARD_MPSHELL_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "emulator/mpshell/series.h"

#define MP_MAX_WATCHED 8

typedef struct mp_waits mp_waits;

typedef struct {
    bool known;       /* the kernel counts it */
    mp_series series; /* run delay, sum over all threads, and blocked time; free with mp_series_free() */
    double run_delay_s;
    double blocked_s; /* of slots at whose end any thread was blocked */
} mp_waits_found;

/* Samples the descendants of init, and the watched processes with theirs. NULL: out of memory, or no thread. Records
 * nothing before mp_waits_begin(). */
mp_waits *mp_waits_start(pid_t init, const pid_t *watched, size_t count);
/* t0_us: CLOCK_MONOTONIC. */
void mp_waits_begin(mp_waits *waits, uint64_t t0_us);
/* Ends the thread and frees it; nothing is found where waits is NULL. */
void mp_waits_stop(mp_waits *waits, mp_waits_found *found);

#endif
