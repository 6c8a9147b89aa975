/* The command line of mpshell. */
#ifndef RAILYARD_MPSHELL_OPTIONS_H
#define RAILYARD_MPSHELL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/settings.h"

#define MP_MAX_PATHS 32
#define MP_NAME_SIZE 16 /* a device name with its NUL */

struct mp_path_options {
    char name[MP_NAME_SIZE];
    struct xl_link_settings settings[2]; /* of the uplink, of the downlink */
};

struct mp_options {
    struct mp_path_options paths[MP_MAX_PATHS];
    size_t path_count;
    uint64_t seed;
    uint64_t start_offset_ms;
    char *log_dir; /* NULL = no logs */
    char *summary; /* NULL = no summary */
    bool mptcp;
    bool no_offload;
    uint64_t busy_poll_us;
    bool help;
    char **command;     /* into argv, NULL-terminated */
    char *command_line; /* argv in one line, for the logs */
};

/* Returns 0, or -1 and one sentence in error. The options own their strings: mp_options_free in either case. */
int mp_options_parse(struct mp_options *options, int argc, char **argv, char *error, size_t error_size);
void mp_options_free(struct mp_options *options);
/* The text of --help. */
extern const char mp_options_usage[];

#endif
