#include "emulator/flow/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BUFFER_BYTES (64 << 20)

uint64_t fl_clock_ns(int clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double fl_cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int fl_fail(const char *what) {
    fprintf(stderr, "udp-flow: %s: %s\n", what, strerror(errno));
    return -1;
}

static int usage(const char *what) {
    fprintf(stderr,
            "udp-flow: %s; usage: udp-flow send|sink|ping|echo [--to ADDR:PORT] [--bind ADDR:PORT] [--rate BPS] "
            "[--size IP_BYTES] [--duration S] [--count N] [--interval MS] [--segment] [--out FILE]\n",
            what);
    return -1;
}

/* ADDR:PORT, [ADDR6]:PORT. */
static int parse_address(char *text, struct sockaddr_storage *address, socklen_t *size) {
    char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return usage("an address needs a port: ADDR:PORT or [ADDR6]:PORT");
    }
    *colon = '\0';
    char *host = text;
    if (host[0] == '[' && colon > text && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return usage("an address is not ADDR:PORT or [ADDR6]:PORT in numbers");
    }
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int parse_one(struct fl_options *o, int option) {
    switch (option) {
    case 't':
        return parse_address(optarg, &o->to, &o->to_size);
    case 'b':
        return parse_address(optarg, &o->bind, &o->bind_size);
    case 'r':
        o->rate_bps = atof(optarg);
        return o->rate_bps > 0 ? 0 : usage("--rate is not a rate");
    case 's':
        o->ip_bytes = (uint32_t)atoi(optarg);
        return o->ip_bytes >= 64 && o->ip_bytes <= 1500 ? 0 : usage("--size is not 64 to 1500 bytes");
    case 'd':
        o->duration_s = atof(optarg);
        return o->duration_s > 0 ? 0 : usage("--duration is not a time in seconds");
    case 'c':
        o->count = (uint32_t)atoi(optarg);
        return o->count > 0 ? 0 : usage("--count is not a number");
    case 'i':
        o->interval_ms = atof(optarg);
        return o->interval_ms >= 0 ? 0 : usage("--interval is not a time in ms");
    case 'g':
        o->segment = true;
        return 0;
    case 'o':
        o->out = optarg;
        return 0;
    default:
        return usage("unknown option");
    }
}

int fl_options_parse(struct fl_options *options, int argc, char **argv) {
    static const struct option known[] = {
        {"to", required_argument, NULL, 't'},       {"bind", required_argument, NULL, 'b'},
        {"rate", required_argument, NULL, 'r'},     {"size", required_argument, NULL, 's'},
        {"duration", required_argument, NULL, 'd'}, {"count", required_argument, NULL, 'c'},
        {"interval", required_argument, NULL, 'i'}, {"segment", no_argument, NULL, 'g'},
        {"out", required_argument, NULL, 'o'},      {NULL, 0, NULL, 0},
    };
    *options = (struct fl_options){.ip_bytes = 1500, .duration_s = 2, .count = 100, .interval_ms = 10};
    if (argc < 2) {
        return usage("no mode");
    }
    options->mode = argv[1];
    optind = 2;
    for (int option = getopt_long(argc, argv, "+", known, NULL); option != -1;
         option = getopt_long(argc, argv, "+", known, NULL)) {
        if (parse_one(options, option) != 0) {
            return -1;
        }
    }
    return 0;
}

uint32_t fl_header_bytes(const struct fl_options *options) {
    return (options->to.ss_family == AF_INET6 ? 40u : 20u) + 8u;
}

int fl_socket(const struct fl_options *options) {
    int family = options->to_size != 0     ? options->to.ss_family
                 : options->bind_size != 0 ? options->bind.ss_family
                                           : AF_INET;
    int size = SOCKET_BUFFER_BYTES;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fl_fail("cannot make a socket");
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
    if ((options->bind_size != 0 && bind(fd, (const struct sockaddr *)&options->bind, options->bind_size) != 0) ||
        (options->to_size != 0 && connect(fd, (const struct sockaddr *)&options->to, options->to_size) != 0)) {
        fl_fail("cannot bind or connect the socket");
        close(fd);
        return -1;
    }
    return fd;
}
