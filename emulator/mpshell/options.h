/* The options of mpshell, as the command line and a configuration file set them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/settings.h"
#include "emulator/link/route.h"
#include "emulator/link/settings.h"
#include "emulator/mpshell/waits.h"

#define MP_MAX_PATHS        32
#define MP_MAX_LINKS        (MP_MAX_PATHS + LINK_BOTTLENECKS_MOST)
#define MP_MAX_SUBFLOWS     8  /* the kernel's own limit */
#define MP_NAME_SIZE        16 /* a device name with its NUL */
#define MP_MAX_SYSCTLS      64
#define MP_SYSCTL_NAME_SIZE 128
#define MP_MAX_FLOWS        16
#define MP_CC_SIZE          16 /* TCP_CA_NAME_MAX */

/* A path, or a bottleneck behind paths. */
typedef struct {
    char name[MP_NAME_SIZE];
    link_settings settings[2]; /* uplink, downlink */
    link_via via[2];           /* of a path: uplink, downlink */
    bool overridden;           /* from the configuration file, and changed by an option */
} mp_path_options;

typedef enum { MP_PATH, MP_BOTTLENECK } mp_link_kind;

#define MP_NO_PAUSE UINT64_MAX

/* Connections of TCP beside COMMAND's traffic. */
typedef struct {
    char name[MP_NAME_SIZE];
    char cc[MP_CC_SIZE];
    const char *path;         /* COMMAND's path that carries them; NULL: they have their own link */
    const char *via;          /* bottlenecks behind their own link; NULL: path is given */
    const char *rate, *delay; /* of their own link; NULL: the defaults */
    uint32_t is_down;         /* the client receives */
    uint32_t count;
    uint64_t from_us, to_us; /* since t0; to_us 0: until COMMAND ends */
    uint64_t size_bytes;     /* of a connection; 0: unlimited */
    uint64_t pause_us;       /* between connections; MP_NO_PAUSE: only one connection */
    size_t at;               /* number of the path that carries them */
} mp_flow_options;

/* --keep-awake */
typedef enum { MP_KEEP_AWAKE_AUTO, MP_KEEP_AWAKE_ON, MP_KEEP_AWAKE_OFF } mp_keep_awake;
extern const char *const mp_keep_awake_names[4]; /* as the option takes them; ends with NULL */

/* A text that the options own. */
typedef struct mp_text {
    struct mp_text *next;
    char text[];
} mp_text;

typedef struct {
    mp_path_options paths[MP_MAX_PATHS];
    size_t path_count;
    size_t told_count; /* paths[0 .. told_count) are COMMAND's, the others belong to flows */
    mp_path_options bottlenecks[LINK_BOTTLENECKS_MOST];
    size_t bottleneck_count;
    mp_flow_options flows[MP_MAX_FLOWS];
    size_t flow_count;
    const char *flow_log; /* file for the flows' bytes over time; NULL = none */
    uint64_t seed;
    uint64_t start_offset_ms;
    const char *config;       /* NULL = none */
    const char *log_dir;      /* NULL = no logs */
    const char *summary;      /* NULL = no summary */
    const char *pcap;         /* directory; NULL = no captures */
    const char *control;      /* path of a Unix socket; NULL = none */
    const char *outside;      /* Unix socket of the mpshell whose namespace is the outside; NULL = the current one */
    const char *lend_outside; /* Unix socket at which to lend the namespace instead of a run; NULL = run COMMAND */
    uint64_t probe_ms;        /* measure lateness for this time instead of a run; 0 = run COMMAND */
    uint64_t snaplen;
    uint64_t busy_poll_us;
    mp_keep_awake keep_awake;
    const char *user;              /* NULL = the caller of sudo, else mpshell's own user */
    const char *netstat;           /* file for the inside's protocol counters; NULL = none */
    const char *lateness;          /* file for the lateness over time; NULL = none */
    pid_t watched[MP_MAX_WATCHED]; /* processes outside whose waits count there */
    size_t watched_count;
    const char *sysctls[MP_MAX_SYSCTLS]; /* NAME=VALUE, of the inside */
    size_t sysctl_count;
    bool live;
    bool nat;
    bool mptcp;
    uint64_t mptcp_subflows, mptcp_addresses; /* limits of its path manager; the number of paths is another */
    bool no_offload;
    bool start_when_ready;
    bool real_time; /* COMMAND runs under SCHED_FIFO, below mpshell */
    bool in_virtual_time;
    bool help;
    size_t of_file[2];  /* number of the first paths and bottlenecks that come from the configuration file */
    char **command;     /* into argv, NULL-terminated */
    char *command_line; /* argv in one line, for the logs */
    mp_text *texts;     /* texts above that are not in argv */
} mp_options;

/* Rows over mp_options: the options that a configuration file may also set. */
extern const setting mp_option_rows[];

void mp_options_free(mp_options *options);
/* Returns a copy of the text that the options own; NULL: no memory. */
char *mp_options_keep(mp_options *options, const char *text);
/* Checks that the name of a path, bottleneck or flow (what) can name a device. False with one sentence in error. */
bool mp_options_check_name(const char *what, const char *name, size_t length, char *error, size_t error_size);
/* Returns "folder/name", which the options own; NULL: no memory. */
char *mp_options_keep_joined(mp_options *options, const char *folder, const char *name);
/* Sets one option (not path, config, help) by its name, from a copy of the value; switches take true, false, yes and
 * no. False with one sentence in error. */
bool mp_options_set(mp_options *options, const char *name, const char *value, char *error, size_t error_size);
/* Returns the paths or the bottlenecks. */
mp_path_options *mp_options_links(mp_options *options, mp_link_kind kind);
/* Adds one without settings. NULL with one sentence in error if the name is invalid or taken, or there are too many. */
mp_path_options *mp_options_add(mp_options *options, mp_link_kind kind, const char *name, size_t length, char *error,
                                size_t error_size);
