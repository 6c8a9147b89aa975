/* The kernel's statistics of TCP connections and MPTCP subflows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define TCP_STATS_MAX_FLOWS 128

/* One TCP connection, or one subflow of MPTCP. */
typedef struct {
    xl_addr local, remote;
    uint64_t bytes_sent, bytes_received; /* payload; sent includes retransmissions */
    uint64_t bytes_retransmitted;
    uint64_t packets_sent, packets_lost; /* data segments; lost: retransmitted segments */
    uint64_t srtt_us, cwnd_bytes;
} tcp_flow;

/* All flows with their latest values, including closed subflows. */
typedef struct {
    tcp_flow flows[TCP_STATS_MAX_FLOWS];
    size_t count;
    unsigned fallbacks;       /* samples of MPTCP sockets that had fallen back to TCP */
    bool knows_data_sent;     /* data_bytes_sent is valid: MPTCP on Linux 6.5 or later */
    uint64_t data_bytes_sent; /* MPTCP stream bytes passed to any subflow; each byte counts once */
} tcp_stats;

/* Returns the bytes that MPTCP sent again on another subflow: sum of all subflows' first transmissions - stream bytes.
 * A closed subflow counts with its last sample. 0 if the kernel does not report stream bytes. */
uint64_t tcp_stats_reinjected(const tcp_stats *);

/* Reads the statistics of a connected socket. */
void tcp_stats_sample(tcp_stats *, int fd, bool mptcp);
