/* The state of an mpshell while it runs. */
#pragma once

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
#include "emulator/mpshell/stream.h"
#include "emulator/mpshell/user.h"

#define MP_ADDRESS_SIZE  16                       /* dotted quad with its NUL */
#define MP_ADDRESS6_SIZE 32                       /* fd6d:7073:6800:ff::2 and room */
#define MP_MAX_TRACES    (2 * MP_MAX_LINKS + 256) /* with room for traces that the control socket names */
#define MP_ERROR_SIZE    1024

typedef struct {
    char *path; /* as given; the hash of a constant rate is that of this text */
    char sha256[65];
    link_trace trace;
} mp_trace;

typedef struct mp_mailbox mp_mailbox; /* mailbox.h */
typedef struct mp_flows mp_flows;     /* flows.h */

/* One direction of a path, whose packets go from one device through the links of the route to the other. Or one
 * direction of a bottleneck, which has no devices. */
typedef struct mp_direction {
    size_t number;              /* number of the direction, and of its link in routes */
    link_route route;           /* of a path's packets */
    struct mp_direction *entry; /* first direction on the route */
    const mp_trace *trace;
    link_parts parts;
    emulated_link *link;
    link_log *log;          /* NULL without --log-dir */
    mp_stream *log_file;    /* what it is written to */
    mp_stream *departures;  /* exact times; NULL without --log-dir */
    mp_stream *captured_in; /* packets as read from the device; NULL without --pcap */
    mp_stream *captured_out;
    int from_fd;
    int to_fd;
    uint64_t write_errors; /* packets that the receiving device rejected */
    uint64_t looked_us;    /* when the sending device was last read */
    bool may_merge;        /* the receiving device takes UDP super-packets */
} mp_direction;

/* Packets that a device dropped: received = written to it by mpshell, transmitted = routed into it by the kernel. */
typedef struct {
    uint64_t received;
    uint64_t transmitted;
} mp_device_drops;

/* Names and addresses of the two ends of a path. */
typedef struct {
    char outside_name[MP_NAME_SIZE];
    char inside_address[MP_ADDRESS_SIZE];
    char outside_address[MP_ADDRESS_SIZE];
    char inside_address6[MP_ADDRESS6_SIZE]; /* empty if the kernel has no IPv6 */
    char outside_address6[MP_ADDRESS6_SIZE];
} mp_ends;

typedef struct {
    const mp_path_options *options;
    mp_ends ends;
    int inside_fd;
    int outside_fd;
    mp_direction up;
    mp_direction down;
    mp_device_drops inside_drops;
    mp_device_drops outside_drops;
} mp_path;

typedef struct {
    mp_options options;
    mp_path paths[MP_MAX_LINKS]; /* then the bottlenecks, of which only options, up and down are used */
    size_t path_count;
    size_t told_count; /* paths[0 .. told_count) are COMMAND's, the other paths belong to flows */
    size_t link_count; /* paths and bottlenecks */
    mp_trace traces[MP_MAX_TRACES];
    size_t trace_count;
    link_pool *pool;
    int outside_netns; /* descriptors of the namespaces */
    int inside_netns;
    int lender;               /* socket of the mpshell that lends the outside (outside.h); -1: none */
    int claims[MP_MAX_PATHS]; /* sockets that reserve the address ranges (outside_devices.c) */
    uint64_t t0_us;           /* CLOCK_MONOTONIC */
    uint64_t t0_epoch_ms;
    uint64_t t0_epoch_ns;
    uint64_t duration_us;
    double cpu_s; /* processor time of mpshell itself from t0 to the end */
    bool sched_fifo;
    bool command_fifo; /* COMMAND runs under SCHED_FIFO too (--real-time) */
    mp_awake awake;
    mp_user user;         /* COMMAND's user */
    mp_machine machine;   /* from t0 to the end */
    double command_cpu_s; /* processor time of COMMAND and of its children that were waited for */
    bool nat[2];          /* whether rules are in place for IPv4, for IPv6 */
    mp_mailbox *mailbox;  /* requests of other threads; NULL: no such threads */
    mp_result summary, netstat, flow_log;
    mp_late late;
    mp_flows *flows;       /* NULL: no flows */
    struct json_t *events; /* commands of the control socket; NULL: none */
} mp_shell;

/* Returns a direction by its number. */
static inline mp_direction *mp_direction_at(mp_shell *shell, size_t number) {
    return number % 2 == 0 ? &shell->paths[number / 2].up : &shell->paths[number / 2].down;
}

/* Remedy for a missing capability. */
#define MP_AS_ROOT "run mpshell as root, or with --virtual"
/* Writes one sentence to error. Returns false; mp_no_fd: -1; mp_null: NULL. */
#define mp_fail(error, ...)  error_set(error, MP_ERROR_SIZE, __VA_ARGS__)
#define mp_no_fd(error, ...) error_code(error, MP_ERROR_SIZE, __VA_ARGS__)
#define mp_null(error, ...)  error_null(error, MP_ERROR_SIZE, __VA_ARGS__)
