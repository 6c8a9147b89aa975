/* Whether timers fire on time: a thread for each core, above the packet loop in SCHED_FIFO, sleeps for short times and
 * records how late it wakes. No ordinary process can delay it, so that its lateness is that of the machine itself: of a
 * host that halts or preempts a virtual core, or of the kernel. */
#ifndef RAILYARD_MPSHELL_TIMERS_H
#define RAILYARD_MPSHELL_TIMERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emulator/link/lateness.h"
#include "emulator/mpshell/series.h"

typedef struct mp_timers mp_timers;

typedef struct {
    bool sched_fifo; /* else the threads were ordinary ones, and other processes may have delayed them */
    unsigned cores;
    link_lateness lateness;
    mp_series series;   /* of each slot, the largest lateness over the cores; free with mp_series_free() */
    double late_s;      /* sum of the lateness */
    double run_delay_s; /* part of it in which the thread waited for a core that was occupied */
} mp_timers_found;

/* Starts the threads. NULL: out of memory, or no thread can be had. They record nothing before mp_timers_begin(). */
mp_timers *mp_timers_start(void);
/* t0_us: CLOCK_MONOTONIC. */
void mp_timers_begin(mp_timers *timers, uint64_t t0_us);
/* Ends the threads and frees them; nothing is found where timers is NULL. */
void mp_timers_stop(mp_timers *timers, mp_timers_found *found);
/* {"sched_fifo", "cores", "late_s", "run_delay_s", "lateness_us": {...}}; null where nothing was found. */
json_t *mp_timers_report(const mp_timers_found *found);

#endif
