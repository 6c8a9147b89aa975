/* What the mpshells of one machine share to keep its cores awake: a folder that only root can use. */
#ifndef RAILYARD_MPSHELL_AWAKE_SHARE_H
#define RAILYARD_MPSHELL_AWAKE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/mpshell/awake_probe.h"

#define MP_AWAKE_FOLDER     "/run/railyard/awake"
#define MP_AWAKE_MAX_CORES  256
#define MP_AWAKE_PROBE_AGES 60.0 /* seconds for which a probe counts */

/* Opens the folder and makes it where it is not there, mode 0700. Returns a descriptor, or -1 where this process may
 * not, or where somebody else may write there. */
int mp_awake_open_folder(const char *path);
/* Opens the lock of a core. Returns its descriptor, or -1. *held: this process has the lock, which lasts until the
 * last copy of the descriptor is closed. */
int mp_awake_open_core(int folder, size_t core, bool *held);
/* Waits for the right to probe, which lasts until the returned descriptor is closed; -1 where there is none. */
int mp_awake_open_probe(int folder);
/* Reads the probe that an mpshell left there, if it is not older than MP_AWAKE_PROBE_AGES and was made under the same
 * scheduling class and number of cores. now_us: CLOCK_MONOTONIC. */
bool mp_awake_read_probe(int fd, mp_awake_probe *probe, size_t cores, uint64_t now_us);
void mp_awake_write_probe(int fd, const mp_awake_probe *probe, size_t cores, uint64_t now_us);

/* Whether a control group above this process gives it less processor time than the cores have: spinners would use it
 * up. proc and sys are /proc and /sys/fs/cgroup. */
bool mp_awake_has_quota(const char *proc, const char *sys, size_t cores);

#endif
