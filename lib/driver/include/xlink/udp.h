/* The socket driver of libxlink for Linux: one non-blocking UDP socket for each local address.
 *
 * A client adds one socket for each path, bound to the path's address. Policy routing by source address then selects
 * the interface. A server adds one wildcard socket and replies from the address that received the datagram
 * (IP_PKTINFO). Datagrams are received and sent in batches (recvmmsg, sendmmsg). Datagrams of equal size to one
 * destination are sent as one segmented message (UDP_SEGMENT); received datagrams are coalesced (UDP_GRO). The ECN
 * field is passed on.
 *
 * The program's loop, in which it may wait for other things too:
 *
 *     poll xl_udp_fd() for input until xl_endpoint_next_timeout()
 *     xl_udp_receive(udp, endpoint, xl_udp_now())
 *     timers, events, streams
 *     xl_udp_flush(udp, endpoint, xl_udp_now())
 *
 * The driver itself loses no datagram: if the socket buffer is full, the datagram is kept and sent later. If the kernel
 * refuses to send on a path (no route, interface down, filtered), the datagram is dropped and counted in
 * xl_udp_stats.dark, which is not an error: the transport treats it as packet loss. */
#ifndef XLINK_UDP_H
#define XLINK_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_UDP_MAX_SOCKETS 16

typedef struct xl_udp xl_udp;

typedef struct {
    uint64_t datagrams_sent, datagrams_received;
    uint64_t send_calls, receive_calls; /* system calls */
    uint64_t segmented_sends;           /* messages sent with UDP_SEGMENT */
    uint64_t kept;                      /* datagrams that waited because the socket buffer was full */
    uint64_t dark; /* datagrams dropped: refused by the kernel, no socket for them, or no memory to keep them */
    uint64_t last_dark_errno; /* errno of the last one that the kernel refused */
    uint64_t refused;         /* ICMP "port unreachable" received; only for sockets bound to one address */
} xl_udp_stats;

/* Returns NULL and sets errno on failure. */
xl_udp *xl_udp_new(void);
void xl_udp_free(xl_udp *); /* closes the sockets; accepts NULL */

/* Opens a socket bound to `local`. An all-zero ip is the wildcard of its family (IPv6: IPv6 only). Port 0 lets the
 * kernel choose a port. *bound receives the bound address; may be NULL. Returns the socket's index, or
 * -errno. */
int xl_udp_add_socket(xl_udp *, const xl_addr *local, xl_addr *bound);

/* Adds a socket of xl_udp_open_group(). Takes ownership of fd, also on failure. Returns the socket's index, or
 * -errno. */
int xl_udp_adopt_socket(xl_udp *, int fd, const xl_addr *bound);

/* Opens one socket for each worker of a deployment, all on the same address. The kernel passes each datagram to the
 * socket of the worker that its destination CID belongs to (SO_REUSEPORT and a BPF program). All sockets must stay
 * open, in any process, while one of them is in use. Returns 0 and fds[workers], or -errno. */
struct xl_deployment;
int xl_udp_open_group(const xl_addr *local, const struct xl_deployment *, int fds[], xl_addr *bound);

/* Whether the kernel refused to send from this socket's address (ENETDOWN, EADDRNOTAVAIL, ENETUNREACH and the like),
 * which means that its interface is gone. It stays true until xl_udp_try_socket() succeeds. */
bool xl_udp_is_refused(const xl_udp *, int socket);
/* Whether the socket's address exists and has a route to `remote`. The kernel is asked without sending anything. If
 * true, xl_udp_is_refused() becomes false. */
bool xl_udp_try_socket(xl_udp *, int socket, const xl_addr *remote);

/* One descriptor to wait on for all sockets. It is readable (EPOLLIN) when a datagram has arrived, or when the socket
 * buffer has room for a datagram that was kept. */
int xl_udp_fd(const xl_udp *);

/* Passes received datagrams to the endpoint, and sends kept ones if there is room. The number of datagrams of one call
 * is bounded; the descriptor stays readable while more are waiting. */
void xl_udp_receive(xl_udp *, xl_endpoint *, uint64_t now);
/* Sends the endpoint's datagrams. Stops early if the socket buffer is full; the descriptor is readable when it has room
 * again. */
void xl_udp_flush(xl_udp *, xl_endpoint *, uint64_t now);

/* The parts of xl_udp_receive() and xl_udp_flush(), for a transport that is not an xl_endpoint:
 *
 *     xl_udp_receive_each(udp, take, user)
 *     while (xl_udp_has_room(udp) && there is a datagram)
 *         xl_udp_queue(udp, &datagram, data)
 *     xl_udp_send(udp)
 */
/* `data` is valid during the call, and may be changed. */
typedef void xl_udp_taker(void *user, const xl_datagram *, uint8_t *data);
void xl_udp_receive_each(xl_udp *, xl_udp_taker *take, void *user);
/* False: the socket buffers are full. The descriptor is readable when there is room again. */
bool xl_udp_has_room(const xl_udp *);
/* Copies a datagram of datagram.len bytes, at most 65535. The next xl_udp_send() sends it, if it was not sent
 * before. */
void xl_udp_queue(xl_udp *, const xl_datagram *, const uint8_t *data);
void xl_udp_send(xl_udp *);

void xl_udp_get_stats(const xl_udp *, xl_udp_stats *);
/* CLOCK_MONOTONIC, microseconds. */
uint64_t xl_udp_now(void);
/* CLOCK_REALTIME, nanoseconds: for xl_set_time_of_day(). */
uint64_t xl_udp_time_of_day_ns(void);
/* Fills the random key of one endpoint (xl_config.random_key) from the system's generator. Returns 0 or -errno. */
int xl_udp_random_key(uint8_t key[XL_RANDOM_KEY_BYTES]);

XL_END_DECLS

#endif
