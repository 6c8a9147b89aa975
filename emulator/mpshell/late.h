/* --lateness FILE: how late links, timers and endpoints were in each slot. The bound on the effect of lateness on a
 * result is computed from it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "emulator/mpshell/result.h"
#include "emulator/mpshell/series.h"
#include "emulator/mpshell/timers.h"
#include "emulator/mpshell/waits.h"

typedef struct {
    bool wanted;
    mp_result file;
    mp_series links; /* written by the packet loop only */
    mp_timers *timers;
    mp_waits *waits;
    mp_timers_found timers_found; /* set by mp_late_stop */
    mp_waits_found waits_found;
} mp_late;

/* Starts the threads, which record nothing before mp_late_begin(). init: COMMAND's; watched: processes outside. */
void mp_late_start(mp_late *late, pid_t init, const pid_t *watched, size_t count);
/* t0_us: CLOCK_MONOTONIC. */
void mp_late_begin(mp_late *late, uint64_t t0_us);
void mp_late_stop(mp_late *late);
/* Records that a packet due at due_us (since t0) left late_us later, or may have waited that long to be read. */
void mp_late_record(mp_late *late, uint64_t due_us, uint64_t late_us);
/* Writes the file if there is --lateness. False with a sentence in error. */
bool mp_late_write(const mp_late *late, char *error);
void mp_late_free(mp_late *late);
