/* Folder through which the mpshells of one machine share spinners and probes. Only root can use it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/mpshell/awake_probe.h"

#define MP_AWAKE_FOLDER     "/run/railyard/awake"
#define MP_AWAKE_MAX_CORES  256
#define MP_AWAKE_PROBE_AGES 60.0 /* seconds for which a probe is valid */

/* Opens the folder, and makes it if needed, mode 0700. Returns a descriptor, or -1 if this process may not, or others
 * may write there. */
int mp_awake_open_folder(const char *path);
/* Opens the lock of a core. Returns its descriptor, or -1. *held: whether this process has the lock, which lasts until
 * the last copy of the descriptor is closed. */
int mp_awake_open_core(int folder, size_t core, bool *held);
/* Waits for the lock of the probe, which lasts until the returned descriptor is closed. Returns -1 on failure. */
int mp_awake_open_probe(int folder);
/* Reads the last probe. True if it is at most MP_AWAKE_PROBE_AGES old and of as many cores. now_us: CLOCK_MONOTONIC. */
bool mp_awake_read_probe(int fd, mp_awake_probe *probe, size_t cores, uint64_t now_us);
void mp_awake_write_probe(int fd, const mp_awake_probe *probe, size_t cores, uint64_t now_us);

/* Whether this process's control group or one above it has a quota below the time of all cores, which spinners would
 * use up. proc and sys are /proc and /sys/fs/cgroup. */
bool mp_awake_has_quota(const char *proc, const char *sys, size_t cores);
