/* Keeps the cores awake while COMMAND runs, so that timers fire on time.
 *
 * A core that has nothing to do sleeps, a virtual one is halted by its host, and wakes late: tens of us to some ms.
 * Two things keep it awake: /dev/cpu_dma_latency held at 0, which forbids the kernel's deep sleep states, and one
 * spinner a core, a process of SCHED_IDLE that runs where nothing else does. A spinner stands in a session of its own
 * whose scheduling group has the lowest weight, and dies with mpshell (PR_SET_PDEATHSIG).
 *
 * mpshells of one machine share the spinners through locked files in /run/railyard/awake, one a core: the holder of a
 * core's lock spins, the others wait and one of them takes over. Where that folder cannot be had (not root), each has
 * its own. Where a control group's CPU quota is less than the cores there is no spinner: it would use up the quota. */
#ifndef RAILYARD_MPSHELL_AWAKE_H
#define RAILYARD_MPSHELL_AWAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "emulator/mpshell/awake_probe.h"
#include "emulator/mpshell/awake_share.h"
#include "emulator/mpshell/options.h"

typedef struct {
    mp_keep_awake asked;
    bool done;         /* the cores are being kept awake */
    bool quota;        /* a CPU quota forbids spinners */
    bool virtual_time; /* no timer is late, and a spinner would stop time: nothing is done */
    bool shared;       /* the folder of locks is there */
    bool joined;       /* others kept the cores awake already, nothing was probed */
    int latency_fd;    /* /dev/cpu_dma_latency; -1: not held */
    bool latency_held; /* it was held while COMMAND ran */
    bool spinning;     /* the spinners are there */
    size_t count;      /* spinners that this mpshell started, one a core; those that wait for a lock among them */
    pid_t spinners[MP_AWAKE_MAX_CORES];
    double cpu_s; /* processor time of the spinners, known after mp_awake_stop */
    mp_awake_probe probe;
} mp_awake;

/* The numbers of the cores that this process may use, at the most `most`; returns how many. */
size_t mp_awake_cores(size_t *cores, size_t most);
/* Probes where asked is auto, and keeps the cores awake if that brings something (mp_awake_is_worth), or if asked is
 * on. Takes some 0.3 s for the probe. Never fails: what cannot be done is left out, and reported by the members. */
void mp_awake_start(mp_awake *awake, mp_keep_awake asked);
/* Ends the spinners and lets go of the device. May be called twice, and without a start of a zeroed structure. */
void mp_awake_stop(mp_awake *awake);
/* One phrase: what was done and why. */
const char *mp_awake_reason(const mp_awake *awake);

#endif
