/* The command line of xlink-load. */
#pragma once

#include "load/client.h"

#define LOAD_ERROR_BYTES 512

typedef struct {
    load_plan plan;
    uint64_t connections, concurrent, time_limit_us, interval_us;
    const char *out_file, *ca_file;
    bool insecure; /* do not verify the server's certificate; else against ca_file */
    bool help;
} load_options;

/* False with a sentence in error[SETTINGS_ERROR_BYTES]. The options point into argv. */
bool load_options_parse(int argc, char **argv, load_options *, char *error);
/* Prints --help. */
void load_options_print_usage(void);
