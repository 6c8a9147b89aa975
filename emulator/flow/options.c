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

static const char help[] =
    "usage: udp-flow send --to ADDR:PORT --rate BPS [options]\n"
    "       udp-flow sink --bind ADDR:PORT [options]\n"
    "       udp-flow ping --to ADDR:PORT [options]\n"
    "       udp-flow echo --bind ADDR:PORT [options]\n"
    "\n"
    "UDP flows with exact times, to measure an emulator from outside of it.\n"
    "\n"
    "  send  numbered datagrams at a constant rate         sink  the kernel's receive time of every datagram\n"
    "  ping  round trips, a line each: sent at, RTT in ns  echo  answers pings\n"
    "\n"
    "  --to ADDR:PORT     where to; an IP address, [ADDR6]:PORT for IPv6\n"
    "  --bind ADDR:PORT   the own address; port 0 lets the kernel choose, and sink and echo print it\n"
    "  --rate BPS         of send: bits per second, of IP packets and 4 bytes each, the unit of an emulated link\n"
    "  --size BYTES       of send: IP packets of this size, 64 to 1500 (1500)\n"
    "  --duration S       of send, sink, echo (2)\n"
    "  --count N          of ping: so many (100)\n"
    "  --interval MS      of ping: pause between two (10)\n"
    "  --segment          UDP_SEGMENT of send, UDP_GRO of sink\n"
    "  --out FILE         of sink: 24 bytes a datagram, three 64-bit numbers in host order: its number, sent at\n"
    "                     (CLOCK_MONOTONIC ns), received at (CLOCK_REALTIME ns)\n"
    "  --help             this text\n"
    "\n"
    "send and sink end with one JSON object on stdout.\n";

static int wrong(const char *name, const char *text, const char *what) {
    fprintf(stderr, "udp-flow: --%s %s is not %s; see udp-flow --help\n", name, text, what);
    return -1;
}

/* ADDR:PORT, [ADDR6]:PORT. */
static int parse_address(const char *name, const char *text, struct sockaddr_storage *address, socklen_t *size) {
    static const char what[] = "ADDR:PORT or [ADDR6]:PORT in numbers";
    char host[64];
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = length > 2 && text[0] == '[' && colon[-1] == ']';
    if (bracketed) {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof(host)) {
        return wrong(name, text, what);
    }
    memcpy(host, text, length);
    host[length] = '\0';
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return wrong(name, optarg, what);
    }
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int parse_number(const char *name, double least, double most, const char *what, double *value) {
    char *end = NULL;
    *value = strtod(optarg, &end);
    return end != optarg && *end == '\0' && *value >= least && *value <= most ? 0 : wrong(name, optarg, what);
}

static int parse_whole(const char *name, double least, double most, const char *what, uint32_t *value) {
    double number = 0;
    if (parse_number(name, least, most, what, &number) != 0) {
        return -1;
    }
    *value = (uint32_t)number;
    return (double)*value == number ? 0 : wrong(name, optarg, what);
}

static int parse_one(struct fl_options *o, int option) {
    switch (option) {
    case 't':
        return parse_address("to", optarg, &o->to, &o->to_size);
    case 'b':
        return parse_address("bind", optarg, &o->bind, &o->bind_size);
    case 'r':
        return parse_number("rate", 1, 1e12, "bits per second, a number from 1 to 1e12", &o->rate_bps);
    case 's':
        return parse_whole("size", 64, 1500, "a whole number of bytes from 64 to 1500", &o->ip_bytes);
    case 'd':
        return parse_number("duration", 0.001, 86400, "a time in seconds, 0.001 to 86400", &o->duration_s);
    case 'c':
        return parse_whole("count", 1, 1e9, "a whole number from 1 to 1e9", &o->count);
    case 'i':
        return parse_number("interval", 0, 3600000, "a time in ms, 0 to 3600000", &o->interval_ms);
    case 'g':
        o->segment = true;
        return 0;
    case 'o':
        o->out = optarg;
        return 0;
    default:
        return -1;
    }
}

static int needs(const struct fl_options *o, const char *what) {
    fprintf(stderr, "udp-flow: %s needs %s; see udp-flow --help\n", o->mode, what);
    return -1;
}

/* What a mode cannot do without. An unknown mode is main's to refuse. */
static int check_complete(const struct fl_options *o) {
    if (strcmp(o->mode, "send") == 0 && (o->to_size == 0 || o->rate_bps <= 0)) {
        return needs(o, "--to ADDR:PORT and --rate BPS");
    }
    if (strcmp(o->mode, "ping") == 0 && o->to_size == 0) {
        return needs(o, "--to ADDR:PORT");
    }
    if ((strcmp(o->mode, "sink") == 0 || strcmp(o->mode, "echo") == 0) && o->bind_size == 0) {
        return needs(o, "--bind ADDR:PORT");
    }
    return 0;
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
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return 1;
        }
    }
    if (argc < 2) {
        fprintf(stderr, "udp-flow: say send, sink, ping or echo; see udp-flow --help\n");
        return -1;
    }
    options->mode = argv[1];
    optind = 2;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "+:", known, NULL)) != -1;) {
        if (option == '?' || option == ':') {
            fprintf(stderr, "udp-flow: %s %s; see udp-flow --help\n",
                    option == ':' ? "a value is missing after" : "unknown option", argv[optind - 1]);
            return -1;
        }
        if (parse_one(options, option) != 0) {
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "udp-flow: unexpected argument %s; see udp-flow --help\n", argv[optind]);
        return -1;
    }
    return check_complete(options);
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
