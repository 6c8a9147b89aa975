/* What the files of the socket driver share. */
#ifndef UDP_INTERNAL_H
#define UDP_INTERNAL_H

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
#define RECEIVE_BATCH      8  /* messages a recvmmsg, each up to a coalesced 64 KiB */
#define SEND_RUNS          32 /* messages a sendmmsg */
#define TOO_LARGE_KEPT     16
#define ARENA_BYTES        ((size_t)256 * 1024)

/* Datagrams of one size (the last may be shorter) to one destination, back to back in memory. */
typedef struct {
    size_t socket;
    xl_addr local, remote;
    uint8_t ecn;
    size_t offset, len, segment_bytes, segments;
    bool is_alone; /* nothing may join it: a probe of the path MTU */
} udp_run;

/* A run that the kernel had no room for. */
typedef struct udp_kept {
    struct udp_kept *next;
    udp_run run;
    uint8_t data[];
} udp_kept;

typedef struct {
    int fd;
    xl_addr bound;
    bool wildcard, no_segmentation;
    bool refused; /* the interface seems to have gone */
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
    xl_datagram too_large[TOO_LARGE_KEPT]; /* refused by the kernel; the endpoint is to hear of them */
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

/* A tuned, bound, non-blocking socket, or -errno. shared: others may be bound to the same address (SO_REUSEPORT). */
int udp_open_socket(const xl_addr *local, bool shared, xl_addr *bound);
/* Empties the socket's queue of ICMP errors; true if there were any. errno stays as it was. */
bool udp_take_errors(xl_udp *, const udp_socket *);
/* The socket could not send a datagram, errno says why: notes when that speaks of the interface. */
void udp_note_refusal(udp_socket *);
/* Sends datagrams that had to wait, as far as there is room now. */
void udp_send_kept(xl_udp *, size_t index);

#endif
