#include "base/clock.h"
#include "emulator/flow/flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/net.h"
#include "base/settings.h"

#define SOCKET_BUFFER_BYTES (64 << 20)

double fl_cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return clock_used_s(&usage);
}

int fl_fail(const char *what) {
    fprintf(stderr, "udp-flow: %s: %s\n", what, strerror(errno));
    return -1;
}

/* ---- Settings with a form of their own ---- */

/* A number may have an exponent: 12e6. */
static bool read_rate(void *into, const char *text, char *reason, size_t cap) {
    fl_options *o = into;
    char *end = NULL;
    o->rate_bps = strtod(text, &end);
    return (end != text && *end == '\0' && o->rate_bps >= 1 && o->rate_bps <= 1e12) ||
           error_set(reason, cap, "takes bits per second, a number from 1 to 1e12, not '%.60s'", text);
}

/* ---- The table ---- */

#define FIELD(member) SETTING_FIELD(fl_options, member)

static const setting rows[] = {
    {"to", SETTING_OWN, FIELD(to), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Destination: an IP address and port; [ADDR6]:PORT for IPv6."},
    {"bind", SETTING_OWN, FIELD(bind), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Local address. Port 0: the kernel chooses, and sink and echo print it."},
    {"rate", SETTING_OWN, .read = read_rate, .value = "BPS",
     .help = "send: rate in bits per second, counted as emulated links do: IP packets + 4 bytes each."},
    {"size", SETTING_WHOLE, FIELD(ip_bytes), .least = 64, .most = 1500, .value = "BYTES", .fallback = "1500",
     .help = "send: size of the IP packets."},
    {"duration", SETTING_DECIMAL, FIELD(duration_us), .least = 1, .most = 86400000, .scale = 1000, .value = "S",
     .fallback = "2", .help = "send, sink, echo: duration."},
    {"count", SETTING_WHOLE, FIELD(count), .least = 1, .most = 1000000000, .value = "N", .fallback = "100",
     .help = "ping: number of pings."},
    {"interval", SETTING_DECIMAL, FIELD(interval_us), .most = UINT64_C(3600000000), .value = "MS", .fallback = "10",
     .help = "ping: interval."},
    {"segment", SETTING_FLAG, FIELD(segment), .help = "send: use UDP_SEGMENT. sink: use UDP_GRO."},
    {"out", SETTING_TEXT, FIELD(out), .value = "FILE",
     .help = "sink: write 24 bytes for each datagram, three 64-bit numbers in host byte order: number, time sent "
             "(CLOCK_MONOTONIC, ns), time received (CLOCK_REALTIME, ns)."},
    {0},
};

static void print_help(void) {
    printf("usage: udp-flow send --to ADDR:PORT --rate BPS [options]\n"
           "       udp-flow sink --bind ADDR:PORT [options]\n"
           "       udp-flow ping --to ADDR:PORT [options]\n"
           "       udp-flow echo --bind ADDR:PORT [options]\n"
           "\n"
           "UDP flows with exact times, to measure an emulator from outside.\n"
           "\n"
           "  send  send numbered datagrams at a constant rate\n"
           "  sink  record the kernel's receive time of every datagram\n"
           "  ping  measure round trips; prints a line for each: time sent, RTT, in ns\n"
           "  echo  answer pings\n"
           "\n");
    settings_help(stdout, rows, 0);
    printf("\nsend and sink end with one JSON object on stdout.\n");
}

/* Returns the missing options of the mode, or NULL. main() refuses an unknown mode. */
static const char *missing(const fl_options *o) {
    if (strcmp(o->mode, "send") == 0 && (o->to.family == 0 || o->rate_bps <= 0))
        return "--to ADDR:PORT and --rate BPS";
    if (strcmp(o->mode, "ping") == 0 && o->to.family == 0)
        return "--to ADDR:PORT";
    if ((strcmp(o->mode, "sink") == 0 || strcmp(o->mode, "echo") == 0) && o->bind.family == 0)
        return "--bind ADDR:PORT";
    return NULL;
}

int fl_options_parse(fl_options *options, int argc, char **argv) {
    char error[SETTINGS_ERROR_BYTES];
    bool help = argc > 1 && strcmp(argv[1], "--help") == 0;
    *options = (fl_options){.ip_bytes = 1500, .duration_us = 2000000, .count = 100, .interval_us = 10000};
    const setting_tables s = {.table = {{rows, options, 0}}, .count = 1};
    if (argc < 2) {
        fprintf(stderr, "udp-flow: say send, sink, ping or echo; see --help.\n");
        return -1;
    }
    options->mode = argv[1];
    if (!help && !settings_read_args(&s, argc - 1, argv + 1, &help, NULL, error)) {
        fprintf(stderr, "udp-flow: %s\n", error);
        return -1;
    }
    if (help) {
        print_help();
        return 1;
    }
    const char *what = missing(options);
    if (what)
        fprintf(stderr, "udp-flow: %s needs %s; see --help.\n", options->mode, what);
    return !what ? 0 : -1;
}

uint32_t fl_header_bytes(const fl_options *options) {
    return (options->to.family == 6 ? 40u : 20u) + 8u;
}

int fl_socket(const fl_options *options) {
    struct sockaddr_storage to, own;
    const socklen_t to_size = net_to_sockaddr(&options->to, &to), own_size = net_to_sockaddr(&options->bind, &own);
    const bool has_to = options->to.family != 0, is_bound = options->bind.family != 0;
    int size = SOCKET_BUFFER_BYTES;
    int fd = socket(has_to ? to.ss_family : own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fl_fail("cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    if ((is_bound && bind(fd, (const struct sockaddr *)&own, own_size) != 0) ||
        (has_to && connect(fd, (const struct sockaddr *)&to, to_size) != 0)) {
        fl_fail("cannot bind or connect the socket");
        close(fd);
        return -1;
    }
    return fd;
}

void fl_announce(int fd) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    xl_addr own = {0};
    if (getsockname(fd, (struct sockaddr *)&name, &size) == 0)
        net_from_sockaddr((const struct sockaddr *)&name, &own);
    printf("{\"event\":\"listening\",\"port\":%u}\n", own.port);
    fflush(stdout);
}
