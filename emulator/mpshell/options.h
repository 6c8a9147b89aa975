/* The command line of mpshell. */
#ifndef RAILYARD_MPSHELL_OPTIONS_H
#define RAILYARD_MPSHELL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/settings.h"

#define MP_MAX_PATHS        32
#define MP_NAME_SIZE        16 /* a device name with its NUL */
#define MP_MAX_SYSCTLS      64
#define MP_SYSCTL_NAME_SIZE 128

struct mp_path_options {
    char name[MP_NAME_SIZE];
    struct xl_link_settings settings[2]; /* of the uplink, of the downlink */
    bool overridden;                     /* a path of the configuration file that a --path option changed */
};

/* --keep-awake */
enum mp_keep_awake { MP_KEEP_AWAKE_AUTO, MP_KEEP_AWAKE_ON, MP_KEEP_AWAKE_OFF };
extern const char *const mp_keep_awake_names[3]; /* as the option takes them */

struct mp_options {
    struct mp_path_options paths[MP_MAX_PATHS];
    size_t path_count;
    uint64_t seed;
    uint64_t start_offset_ms;
    char *config;  /* NULL = none */
    char *log_dir; /* NULL = no logs */
    char *summary; /* NULL = no summary */
    char *pcap;    /* directory; NULL = no captures */
    char *control; /* path of a Unix socket; NULL = none */
    char *outside; /* Unix socket of the mpshell that lends its namespace as the outside; NULL = the current one */
    char
        *lend_outside; /* Unix socket at which to lend the current namespace, and do nothing else; NULL = run COMMAND */
    uint64_t snaplen;
    uint64_t busy_poll_us;
    enum mp_keep_awake keep_awake;
    char *user;                    /* NULL = who called sudo, else as mpshell itself */
    char *netstat;                 /* file for the inside's protocol counters; NULL = none */
    char *sysctls[MP_MAX_SYSCTLS]; /* NAME=VALUE, of the inside */
    size_t sysctl_count;
    bool live;
    bool nat;
    bool mptcp;
    bool no_offload;
    bool help;
    uint32_t given;       /* options that were on the command line, a bit each */
    size_t paths_of_file; /* the first so many paths come from the configuration file */
    char **command;       /* into argv, NULL-terminated */
    char *command_line;   /* argv in one line, for the logs */
};

/* Returns 0, or -1 and one sentence in error. The options own their strings: mp_options_free in either case. */
int mp_options_parse(struct mp_options *options, int argc, char **argv, char *error, size_t error_size);
void mp_options_free(struct mp_options *options);
/* Sets one option (not path, config, help) by its long name; switches take true, false, yes and no. Returns 0, or -1
 * and one sentence in error. */
int mp_options_set(struct mp_options *options, const char *name, const char *value, char *error, size_t error_size);
/* A new path without settings; NULL and one sentence in error if the name is bad or taken, or there are too many. */
struct mp_path_options *mp_options_add_path(struct mp_options *options, const char *name, size_t length, char *error,
                                            size_t error_size);
/* The text of --help. */
extern const char mp_options_usage[];

#endif
