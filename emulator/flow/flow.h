/* udp-flow: UDP flows with exact times, to measure an emulator from outside.
 *
 *   send    numbered datagrams at a constant rate       sink    writes the kernel's receive time of every datagram
 *   ping    round trips                                 echo    answers pings
 *
 * A datagram starts with its number and the time of its send call (CLOCK_MONOTONIC ns), 8 bytes each, host order. send
 * and sink end with one JSON object on stdout. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xlink/xlink.h"

typedef struct {
    const char *mode;
    xl_addr to, bind; /* family 0: not given */
    double rate_bps;  /* counts IP packets + 4 bytes each, as emulated links do */
    uint32_t ip_bytes;
    uint64_t duration_us;
    uint32_t count; /* number of pings */
    uint64_t interval_us;
    bool segment; /* UDP_SEGMENT when sending, UDP_GRO when receiving */
    const char *out;
} fl_options;

/* Returns 0; 1 after --help, which it prints; -1 with a sentence on stderr. */
int fl_options_parse(fl_options *options, int argc, char **argv);

/* Each returns the exit status. */
int fl_send(const fl_options *options);
int fl_sink(const fl_options *options);
int fl_ping(const fl_options *options);
int fl_echo(const fl_options *options);

/* Makes a UDP socket, bound to options->bind, connected to options->to, if given. -1 with a sentence on stderr. */
int fl_socket(const fl_options *options);
/* Prints the port of the socket, to which datagrams can be sent from now on. */
void fl_announce(int fd);
/* Returns the bytes of IP and UDP headers on the socket. */
uint32_t fl_header_bytes(const fl_options *options);
/* Returns the processor time of this process, in seconds. */
double fl_cpu_s(void);
/* Prints one sentence with errno and returns -1. */
int fl_fail(const char *what);
