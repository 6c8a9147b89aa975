/* What the kernel says about TCP connections and MPTCP subflows. */
#ifndef BASE_TCP_STATS_H
#define BASE_TCP_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define TCP_STATS_MAX_FLOWS 128

/* One TCP connection: a plain one, or a subflow of MPTCP. */
typedef struct {
    xl_addr local, remote;
    uint64_t bytes_sent, bytes_received; /* payload; sent includes retransmissions */
    uint64_t bytes_retransmitted;
    uint64_t packets_sent, packets_lost; /* data segments; lost: retransmitted segments */
    uint64_t srtt_us, cwnd_bytes;
} tcp_flow;

/* Every flow ever seen, with its newest figures: subflows that the kernel has closed stay. */
typedef struct {
    tcp_flow flows[TCP_STATS_MAX_FLOWS];
    size_t count;
    unsigned fallbacks;       /* samples of MPTCP sockets that had fallen back to TCP */
    bool knows_data_sent;     /* of MPTCP, by a kernel that says it: Linux 6.5 or later */
    uint64_t data_bytes_sent; /* of the MPTCP stream, handed to any subflow; each byte counts once */
} tcp_stats;

/* What MPTCP sent again on another subflow, in bytes: the first transmissions of all subflows without the bytes of the
 * stream. A subflow that the kernel has closed counts as at its last sample. 0 where the kernel does not say it. */
uint64_t tcp_stats_reinjected(const tcp_stats *);

/* Reads the figures of a connected socket. */
void tcp_stats_sample_tcp(tcp_stats *, int fd);
void tcp_stats_sample_mptcp(tcp_stats *, int fd);

#endif
