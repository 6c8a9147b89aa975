/* Shared by the writers of a recording's files: the session's time axis, files, the raw log. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emulator/saturatr/recording.h"

/* Converts a direction's times to the session's axis. The server receives the uplink. */
typedef struct {
    const sat_recording *recording;
    bool up;
} sat_axis;

/* Return when a packet left and arrived, us since t0. */
int64_t sat_axis_sent(const sat_axis *axis, const sat_arrival *arrival);
int64_t sat_axis_received(const sat_axis *axis, const sat_arrival *arrival);

typedef struct {
    FILE *stream; /* NULL: not open */
    char path[PATH_MAX];
} sat_file;

/* The files of a direction: the raw log, and the result made from it. */
typedef struct {
    sat_file raw, made;
} sat_files;

/* Creates the files of path k: its name, .up or .down, and the suffixes. Writes the raw log's header. False with one
 * sentence in error; call sat_files_finish() in any case. */
bool sat_files_create(sat_files *files, const sat_axis *axis, size_t k, const char *raw_suffix, const char *suffix,
                      char *error);
/* Closes the open files. False if `ok` is false, or with one sentence in error if something was not written. */
bool sat_files_finish(sat_files *files, bool ok, char *error);
/* Writes all arrivals to the raw log, and calls `take` for each. */
void sat_files_write_raw(const sat_files *files, const sat_axis *axis, const sat_records *records,
                         void (*take)(void *user, const sat_axis *axis, const sat_arrival *arrival), void *user);

/* Writes a direction of path k in light mode: raw log, light trace, figures. False with one sentence in error. */
bool sat_light_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error);

/* The same for single packets: raw log, latencies by size, figures. */
bool sat_sizes_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error);
