/* What an mpshell consists of while it runs. */
#ifndef RAILYARD_MPSHELL_SHELL_H
#define RAILYARD_MPSHELL_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "emulator/link/link.h"
#include "emulator/mpshell/awake.h"
#include "emulator/mpshell/late.h"
#include "emulator/mpshell/machine.h"
#include "emulator/mpshell/options.h"
#include "emulator/mpshell/result.h"
#include "emulator/mpshell/user.h"

#define MP_ADDRESS_SIZE  16                       /* dotted quad with its NUL */
#define MP_ADDRESS6_SIZE 32                       /* fd6d:7073:6800:ff::2 and room */
#define MP_MAX_TRACES    (2 * MP_MAX_PATHS + 256) /* some more for those that the control socket names */
#define MP_ERROR_SIZE    1024

struct mp_trace {
    char *path; /* absolute; of a constant rate as it was given, whose hash is that of this text */
    char sha256[65];
    struct link_trace trace;
};

struct mp_logfile;
struct mp_stream;
struct mp_mailbox;

/* One direction of a path: packets read from one device go through the link to the other. */
struct mp_direction {
    const struct mp_trace *trace;
    struct link_files files; /* of its settings */
    struct link *link;
    struct link_nat *nat; /* of the uplink, shared with the downlink; NULL without one */
    struct link_log *log; /* NULL without --log-dir */
    struct mp_logfile *file;
    struct mp_stream *departures;  /* exact times; NULL without --log-dir */
    struct mp_stream *captured_in; /* as packets come from their device; NULL without --pcap */
    struct mp_stream *captured_out;
    int from_fd;
    int to_fd;
    uint64_t write_errors; /* packets that the receiving device refused */
    uint64_t looked_us;    /* when the sending device was last found empty */
    bool may_merge;        /* the receiving device takes UDP super-packets */
};

/* Packets that a device dropped: received = written to it by mpshell, transmitted = routed into it by the kernel. */
struct mp_device_drops {
    uint64_t received;
    uint64_t transmitted;
};

struct mp_path {
    const struct mp_path_options *options;
    char outside_name[MP_NAME_SIZE];
    char inside_address[MP_ADDRESS_SIZE];
    char outside_address[MP_ADDRESS_SIZE];
    char inside_address6[MP_ADDRESS6_SIZE]; /* empty where the kernel has no IPv6 */
    char outside_address6[MP_ADDRESS6_SIZE];
    int inside_fd;
    int outside_fd;
    struct mp_direction up;
    struct mp_direction down;
    struct mp_device_drops inside_drops;
    struct mp_device_drops outside_drops;
};

struct mp_shell {
    struct mp_options options;
    struct mp_path paths[MP_MAX_PATHS];
    size_t path_count;
    struct mp_trace traces[MP_MAX_TRACES];
    size_t trace_count;
    struct link_pool *pool;
    int outside_netns; /* descriptors of the namespaces */
    int inside_netns;
    int lender; /* socket of the mpshell that lends its namespace as the outside, see outside.h; -1: none */
    int claims[MP_MAX_PATHS]; /* sockets that hold the address ranges, see netns.c */
    uint64_t t0_us;           /* CLOCK_MONOTONIC */
    uint64_t t0_epoch_ms;
    uint64_t t0_epoch_ns;
    uint64_t duration_us;
    double cpu_s; /* processor time of mpshell itself from t0 to the end */
    bool sched_fifo;
    bool command_fifo; /* COMMAND too, with --real-time */
    struct mp_awake awake;
    struct mp_user user;        /* whom COMMAND runs as */
    struct mp_machine machine;  /* from t0 to the end */
    double command_cpu_s;       /* processor time of COMMAND and of its children that were waited for */
    bool nat[2];                /* rules are in place for IPv4, for IPv6 */
    struct mp_mailbox *mailbox; /* requests of other threads; NULL: there are none */
    struct mp_result summary, netstat;
    struct mp_late late;
    struct json_t *events; /* what the control socket changed; NULL: nothing */
};

/* Formats one sentence into error and returns -1. */
// What to do where a capability is missing.
#define MP_AS_ROOT          "run mpshell as root, or with --virtual"
#define mp_fail(error, ...) error_code(error, MP_ERROR_SIZE, __VA_ARGS__)

#endif
