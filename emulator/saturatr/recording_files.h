/* What the writers of a recording's files share: the session's axis of time, files, the raw log. */
#ifndef RAILYARD_SATURATR_RECORDING_FILES_H
#define RAILYARD_SATURATR_RECORDING_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emulator/saturatr/recording.h"

/* How a direction's times come onto the session's axis: the uplink is received by the server. */
typedef struct {
    const sat_recording *recording;
    bool up;
} sat_axis;

/* When a packet left and arrived, us since t0. */
int64_t sat_axis_sent(const sat_axis *axis, const sat_arrival *arrival);
int64_t sat_axis_received(const sat_axis *axis, const sat_arrival *arrival);

typedef struct {
    FILE *stream; /* NULL: not open */
    char path[PATH_MAX];
} sat_file;

/* What a direction becomes: a raw log, and what is made from it. */
typedef struct {
    sat_file raw, made;
} sat_files;

/* The files for path k: its name, .up or .down, and the suffixes. The raw log has its header. False with one sentence
 * in error; sat_files_finish() is called all the same. */
bool sat_files_create(sat_files *files, const sat_axis *axis, size_t k, const char *raw_suffix, const char *suffix,
                      char *error);
/* Closes those that are open. False if `ok` is false, or with one sentence in error if something was not written. */
bool sat_files_finish(sat_files *files, bool ok, char *error);
/* Writes all arrivals to the raw log; each is taken too. */
void sat_files_write_raw(const sat_files *files, const sat_axis *axis, const sat_records *records,
                         void (*take)(void *user, const sat_axis *axis, const sat_arrival *arrival), void *user);

/* A direction of path k of a light recording: raw log, light trace, figures. False with one sentence in error. */
bool sat_light_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error);

/* The same of one that sends packets alone: raw log, latencies by size, figures. */
bool sat_sizes_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error);

#endif
