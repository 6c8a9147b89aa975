/* Shared by the files of the socket driver. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "xlink/udp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define MAX_DATAGRAM_BYTES 65535
#define CONTROL_BYTES      256
#define RECEIVE_BATCH      8  /* messages per recvmmsg(), each of up to 64 KiB if coalesced */
#define SEND_RUNS          32 /* messages per sendmmsg() */
#define TOO_LARGE_KEPT     16
#define ARENA_BYTES        ((size_t)256 * 1024)

/* Datagrams of one size (the last may be shorter) to one destination, back to back in memory. */
typedef struct {
    size_t socket;
    xl_addr local, remote;
    uint8_t ecn;
    size_t offset, len, segment_bytes, segments;
    bool is_alone; /* takes no further datagram: a probe of the path MTU */
} udp_run;

/* A run that waits for room in the socket buffer. */
typedef struct udp_kept {
    struct udp_kept *next;
    udp_run run;
    uint8_t data[];
} udp_kept;

typedef struct {
    int fd;
    xl_addr bound;
    bool wildcard, no_segmentation;
    bool refused; /* the interface is gone; see xl_udp_is_refused() */
    udp_kept *kept_first, *kept_last;
    size_t kept_bytes;
} udp_socket;

struct xl_udp {
    int epoll_fd;
    udp_socket sockets[XL_UDP_MAX_SOCKETS];
    size_t count;
    xl_udp_stats stats;
    uint8_t *receive_buffers; /* RECEIVE_BATCH x MAX_DATAGRAM_BYTES */
    uint8_t *arena;
    xl_datagram too_large[TOO_LARGE_KEPT]; /* refused by the kernel with EMSGSIZE, for xl_endpoint_too_large() */
    size_t too_large_count;
    udp_run runs[SEND_RUNS];
    size_t run_count, arena_used;
};

typedef union {
    char bytes[CONTROL_BYTES];
    struct cmsghdr align;
} udp_control;

/* Writes addr to *out and returns the sockaddr's length. */
socklen_t udp_to_sockaddr(const xl_addr *addr, struct sockaddr_storage *out);
void udp_from_sockaddr(const struct sockaddr_storage *in, xl_addr *out);

/* Returns a tuned, bound, non-blocking socket, or -errno. shared: sets SO_REUSEPORT. */
int udp_open_socket(const xl_addr *local, bool shared, xl_addr *bound);
/* Empties the socket's queue of ICMP errors. Returns whether there were any. Preserves errno. */
bool udp_take_errors(xl_udp *, const udp_socket *);
/* Sets `refused` if errno, the reason why a datagram could not be sent, means that the interface is gone. */
void udp_note_refusal(udp_socket *);
/* Sends waiting datagrams until the socket buffer is full. */
void udp_send_kept(xl_udp *, size_t index);
