/* A finished recording and its files (docs/reference/saturatr.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "emulator/saturatr/clock.h"
#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/options.h"

/* One direction of one path. */
typedef struct {
    bool recorded;
    const sat_records *records;                      /* borrowed */
    uint64_t lost, disordered, sent, most_in_flight; /* data packets; lost: missing below the highest one */
    bool incomplete;                                 /* the memory for records was used up */
    double p95_pps;    /* of a heavy recording: 95th percentile of opportunities per second */
    json_t *figures;   /* for the description; NULL: not written */
    char missing[128]; /* why there is no trace, or no latencies, a sentence; empty: there are */
} sat_direction;

typedef struct {
    double base_rtt_ms; /* shortest round trip before the links were filled */
    char interface[16]; /* with NUL; empty: unknown */
    sat_direction up, down;
} sat_recorded_path;

typedef struct {
    const sat_options *options;
    int argc;
    char **argv;
    sat_clock clock;
    uint64_t t0_us;       /* CLOCK_MONOTONIC of the client */
    uint64_t t0_epoch_us; /* CLOCK_REALTIME of the client at the same moment */
    uint64_t ramp_us;     /* from the first packet to t0 */
    bool saturated;       /* all links were full at t0 */
    uint64_t duration_us; /* recorded time; less than requested if interrupted */
    uint64_t client_socket_drops, server_socket_drops, client_strays, server_strays;
    char server_host[65], server_kernel[65];
    sat_recorded_path paths[SAT_MAX_PATHS];
    FILE *summary;      /* open while the recording is written */
    char *summary_text; /* a line for each direction */
    size_t summary_length;
} sat_recording;

/* Writes all files into options->out, which must exist. False with one sentence in error. */
bool sat_recording_write(sat_recording *recording, char *error);
/* Frees what sat_recording_write() made in memory. */
void sat_recording_free(sat_recording *recording);
/* Writes session.json (light.json, sizes.json) of a converted recording, and index.yaml if it is heavy and has two
 * paths or more. Used by sat_recording_write. */
bool sat_recording_describe(const sat_recording *recording, char *error);
/* Writes the path of the description in options->out: session.json, light.json or sizes.json. */
void sat_session_path(const sat_options *options, char *path, size_t size);
/* Prints how to replay a written recording. */
void sat_recording_tell_replay(const sat_recording *recording, FILE *stream);
