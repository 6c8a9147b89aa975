/* A finished recording and the files it becomes (docs/reference/saturatr.md). */
#ifndef RAILYARD_SATURATR_RECORDING_H
#define RAILYARD_SATURATR_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "emulator/saturatr/clock.h"
#include "emulator/saturatr/convert.h"
#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/options.h"

/* What a light recording says of one direction, beside the trace. */
typedef struct {
    uint64_t trains, rows; /* trains sent; those whose first packet arrived */
    uint64_t lost_trains, lost_packets, late_packets, negative_delays, left_out;
    double least_delay_ms, mean_delay_ms; /* one way; 0 without a row */
    double train_ms, pause_ms; /* mean time from the first packet of a train to its last one, and from there to the next
                                  train; 0 without a row */
    bool has_heavy;
    uint32_t heavy_from; /* 1 = the first packet */
    double spacing_ms;   /* of the last quarter of a train */
} sat_light_figures;

/* What a recording of packets that are sent alone says of one direction, beside the latencies. */
typedef struct {
    uint64_t sent, lost, left_out;    /* packets; sent: inside of the recording */
    uint64_t arrived[SAT_SIZES_MOST]; /* of each size */
    double median_ms[SAT_SIZES_MOST]; /* one-way delay; 0 if none arrived */
    uint32_t missing_bytes;           /* a size of which none arrived, 0 = none; then there are no latencies */
} sat_size_figures;

/* One direction of one path. */
typedef struct {
    bool recorded;
    const sat_records *records;                      /* borrowed */
    uint64_t lost, disordered, sent, most_in_flight; /* data packets; lost: overtaken by a later one */
    bool incomplete;                                 /* the memory for records was used up */
    sat_light_figures light;                         /* of a light recording */
    sat_size_figures sizes;                          /* of one that sends packets alone */
    sat_converter converter;                         /* of a heavy one */
    double p95_pps;                                  /* 95th percentile of the opportunities of whole seconds */
} sat_direction;

typedef struct {
    double base_rtt_ms; /* least round trip before the links were filled */
    char interface[16]; /* with NUL; empty: not known */
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
    uint64_t duration_us; /* what was recorded: less than asked for when interrupted */
    uint64_t client_socket_drops, server_socket_drops, client_strays, server_strays;
    char server_host[65], server_kernel[65];
    sat_recorded_path paths[SAT_MAX_PATHS];
} sat_recording;

/* Writes all files into options->out, which must exist. False with one sentence in error. */
bool sat_recording_write(sat_recording *recording, char *error);
/* index.yaml and session.json (of a light recording only light.json), of the recording whose directions were
 * converted; used by sat_recording_write. */
bool sat_recording_describe(const sat_recording *recording, char *error);
/* The file in options->out that says what the recording is: session.json, light.json or sizes.json. */
void sat_session_path(const sat_options *options, char *path, size_t size);
/* Says in a line how a recording that was written is replayed. */
void sat_recording_tell_replay(const sat_recording *recording, FILE *stream);

#endif
