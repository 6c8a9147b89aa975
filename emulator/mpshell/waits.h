/* How long programs under test waited for a core while they could have run: the kernel's run delay (second figure of
 * /proc/PID/task/TID/schedstat) of COMMAND's processes and of watched processes outside, sampled once a slot. */
#ifndef RAILYARD_MPSHELL_WAITS_H
#define RAILYARD_MPSHELL_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "emulator/mpshell/series.h"

#define MP_MAX_WATCHED 8

struct mp_waits;

struct mp_waits_found {
    bool known;              /* the kernel counts it */
    struct mp_series series; /* sum over all threads; free with mp_series_free() */
    double total_s;
};

/* Samples the descendants of init, and the watched processes with theirs. NULL: out of memory, or no thread. Records
 * nothing before mp_waits_begin(). */
struct mp_waits *mp_waits_start(pid_t init, const pid_t *watched, size_t count);
/* t0_us: CLOCK_MONOTONIC. */
void mp_waits_begin(struct mp_waits *waits, uint64_t t0_us);
/* Ends the thread and frees it; nothing is found where waits is NULL. */
void mp_waits_stop(struct mp_waits *waits, struct mp_waits_found *found);

#endif
