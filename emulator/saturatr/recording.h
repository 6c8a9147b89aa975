/* A finished recording and its files (docs/reference/saturatr.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emulator/saturatr/clock.h"
#include "emulator/saturatr/convert.h"
#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/options.h"

/* Figures of one direction of a light recording, beside the trace. */
typedef struct {
    uint64_t trains, rows; /* trains sent; trains whose first packet arrived */
    uint64_t lost_trains, lost_packets, late_packets, negative_delays, left_out;
    double least_delay_ms, mean_delay_ms; /* one way; 0 without a row */
    double train_ms, pause_ms; /* mean time from the first to the last packet of a train, and from there to the next
                                * train; 0 without a row */
    bool has_heavy;
    uint32_t heavy_from; /* 1 = the first packet */
    double spacing_ms;   /* spacing of the last quarter of a train */
} sat_light_figures;

/* Figures of one direction of a recording of single packets, beside the latencies. */
typedef struct {
    uint64_t sent, lost, left_out;    /* packets; sent: within the recording */
    uint64_t arrived[SAT_SIZES_MOST]; /* of each size */
    double median_ms[SAT_SIZES_MOST]; /* one-way delay; 0 if none arrived */
    uint32_t missing_bytes;           /* a size of which no packet arrived, so that there are no latencies; 0: none */
} sat_size_figures;

/* One direction of one path. */
typedef struct {
    bool recorded;
    const sat_records *records;                      /* borrowed */
    uint64_t lost, disordered, sent, most_in_flight; /* data packets; lost: missing below the highest one */
    bool incomplete;                                 /* the memory for records was used up */
    sat_light_figures light;                         /* of a light recording */
    sat_size_figures sizes;                          /* of a recording of single packets */
    sat_converter converter;                         /* of a heavy recording */
    double p95_pps;                                  /* 95th percentile of opportunities per second */
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
} sat_recording;

/* Writes all files into options->out, which must exist. False with one sentence in error. */
bool sat_recording_write(sat_recording *recording, char *error);
/* Writes session.json (light.json, sizes.json) of a converted recording, and index.yaml if it is heavy and has two
 * paths or more. Used by sat_recording_write. */
bool sat_recording_describe(const sat_recording *recording, char *error);
/* Writes the path of the description in options->out: session.json, light.json or sizes.json. */
void sat_session_path(const sat_options *options, char *path, size_t size);
/* Prints how to replay a written recording. */
void sat_recording_tell_replay(const sat_recording *recording, FILE *stream);
