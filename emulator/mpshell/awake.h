/* Keeps the cores awake while COMMAND runs, so that timers fire on time.
 *
 * An idle core sleeps (a host halts a virtual one) and wakes late: tens of us to some ms. Two measures keep it awake:
 * /dev/cpu_dma_latency held at 0, which forbids the kernel's deep sleep states, and one spinner per core, a process of
 * SCHED_IDLE that runs only if nothing else does. A spinner has its own session, whose scheduling group has the lowest
 * weight, and dies with mpshell (PR_SET_PDEATHSIG).
 *
 * mpshells of one machine share the spinners through locked files in /run/railyard/awake, one per core: the holder of a
 * core's lock spins, the others wait, and one of them takes over. Without access to that folder (not root), each
 * mpshell has its own spinners. If a control group's CPU quota is less than the cores, there are no spinners: they
 * would use up the quota. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "emulator/mpshell/awake_probe.h"
#include "emulator/mpshell/awake_share.h"
#include "emulator/mpshell/options.h"

typedef struct {
    mp_keep_awake asked;
    bool done;         /* the cores are being kept awake */
    bool quota;        /* a CPU quota rules out spinners */
    bool virtual_time; /* nothing is done: no timer is late, and a spinner would stop time */
    bool shared;       /* the folder of locks is open */
    bool joined;       /* others already kept the cores awake; nothing was probed */
    int latency_fd;    /* /dev/cpu_dma_latency; -1: not held */
    bool latency_held; /* latency_fd was held while COMMAND ran */
    bool spinning;     /* the spinners have been started */
    size_t count;      /* spinners of this mpshell, one per core, including those that wait for a lock */
    pid_t spinners[MP_AWAKE_MAX_CORES];
    double cpu_s; /* processor time of the spinners, set by mp_awake_stop */
    mp_awake_probe probe;
} mp_awake;

/* Fills in the numbers of the cores that this process may use, at most `most`. Returns how many. */
size_t mp_awake_cores(size_t *cores, size_t most);
/* Keeps the cores awake if `asked` is on, or if it is auto and a probe of some 0.35 s shows that it helps
 * (mp_awake_is_worth). Never fails: measures that are impossible are left out, and the members report it. */
void mp_awake_start(mp_awake *awake, mp_keep_awake asked);
/* Ends the spinners and closes the device. May be called twice, and for a zeroed structure without a start. */
void mp_awake_stop(mp_awake *awake);
/* Returns a phrase: the reason for what was done. */
const char *mp_awake_reason(const mp_awake *awake);
