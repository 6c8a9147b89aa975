/* The command line of saturatr. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/saturatr/auth.h"
#include "emulator/saturatr/sizes.h"
#include "emulator/saturatr/socket.h"
#include "emulator/saturatr/train.h"
#include "emulator/saturatr/wire.h"

#define SAT_NAME_SIZE           16 /* name of a path, a device name with its NUL */
#define SAT_RECORDING_NAME_MOST 64 /* characters */

typedef enum { SAT_HEAVY, SAT_LIGHT } sat_mode;

typedef struct {
    char name[SAT_NAME_SIZE];
    const char *technology;
    xl_addr local;
} sat_path_options;

typedef struct {
    sat_role role;
    bool help;
    xl_addr server; /* client: connects to it; server: listens on it */
    const char *token_file;
    char token[SAT_TOKEN_MOST + 1];
    uint64_t memory_bytes;
    uint64_t duration_us; /* client */
    /* server */
    uint16_t ack_port;
    uint64_t max_duration_us;
    bool once;
    /* client */
    sat_path_options paths[SAT_MAX_PATHS];
    size_t path_count;
    xl_addr ack_via; /* family 0: not given */
    bool up, down;
    sat_mode mode;
    uint32_t train_packets; /* light: packets per train; 0 in heavy mode */
    uint64_t every_us;      /* light: from the start of a train to the next; 0 in heavy mode */
    sat_sizes sizes;        /* light: sizes of single packets, one every every_us, instead of trains */
    uint64_t ramp_us, ramp_most_us;
    size_t packet_bytes;
    const char *out, *name, *scenario, *licence, *note; /* point into argv */
} sat_options;

/* Prints --help. */
void sat_options_print_usage(void);

/* Reads the command line. False with one sentence in error (SAT_ERROR_SIZE). Pointers point into argv. */
bool sat_options_parse(sat_options *options, int argc, char **argv, char *error);
