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

/* Writes all arrivals to the raw log, and calls `take` for each. */
void sat_files_write_raw(const sat_files *files, const sat_axis *axis, const sat_records *records,
                         void (*take)(void *user, const sat_axis *axis, const sat_arrival *arrival), void *user);

/* Write the arrivals of a direction of path k into its files, a line into the recording's summary, and figures and what
 * is missing into the direction: of trains, and of single packets. False without memory. */
bool sat_light_write(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction);
bool sat_sizes_write(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction);
