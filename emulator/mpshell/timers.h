/* Whether timers fire on time: a thread for each core, above the packet loop in SCHED_FIFO, sleeps for short times and
 * records how late it wakes. No ordinary process can delay it, so its lateness comes from the machine: from a host that
 * halts or preempts a virtual core, or from the kernel. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emulator/link/lateness.h"
#include "emulator/mpshell/series.h"

typedef struct mp_timers mp_timers;

typedef struct {
    bool sched_fifo; /* false: other processes may have delayed the threads */
    unsigned cores;
    link_lateness lateness;
    mp_series series;   /* largest lateness over the cores per slot; free with mp_series_free() */
    double late_s;      /* sum of the lateness */
    double run_delay_s; /* part of it in which threads waited for an occupied core */
} mp_timers_found;

/* Starts the threads, which record nothing before mp_timers_begin(). NULL: no memory, or no thread could start. */
mp_timers *mp_timers_start(void);
/* t0_us: CLOCK_MONOTONIC. */
void mp_timers_begin(mp_timers *timers, uint64_t t0_us);
/* Ends the threads and frees them. Without timers (NULL) *found is zero. */
void mp_timers_stop(mp_timers *timers, mp_timers_found *found);
/* Returns {"sched_fifo", "cores", "late_s", "run_delay_s", "lateness_us": {...}}; null without timers. */
json_t *mp_timers_report(const mp_timers_found *found);
