/* The socket driver of libxlink: one non-blocking UDP socket for each local address, Linux only.
 *
 * A client adds one socket for each path, bound to that path's address, so that policy routing by source address sends
 * its datagrams out of the right interface. A server adds one wildcard socket; a reply leaves from the address that the
 * datagram came to (IP_PKTINFO). Datagrams travel in batches (recvmmsg, sendmmsg), runs of equal size to one
 * destination as one segmented send (UDP_SEGMENT), received ones coalesced (UDP_GRO), ECN bits included.
 *
 * A driver's loop, with whatever else it waits for:
 *
 *     poll xl_udp_fd() for input until xl_endpoint_next_timeout()
 *     xl_udp_receive(udp, endpoint, xl_udp_now())
 *     timers, events, streams
 *     xl_udp_flush(udp, endpoint, xl_udp_now())
 *
 * No datagram is lost by the driver's own fault: what the kernel has no room for is kept and sent when it has. A path
 * that is dark (no route, interface down, filtered) eats its datagrams, as a radio would; that is counted, not an
 * error. */
#ifndef XLINK_UDP_H
#define XLINK_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_UDP_MAX_SOCKETS 16

typedef struct xl_udp xl_udp;

typedef struct {
    uint64_t datagrams_sent, datagrams_received;
    uint64_t send_calls, receive_calls; /* system calls */
    uint64_t segmented_sends;           /* of send_calls' messages, those with UDP_SEGMENT */
    uint64_t kept;                      /* datagrams that had to wait for room in the kernel */
    uint64_t dark;                      /* datagrams that a dark path ate */
    uint64_t last_dark_errno;
    uint64_t refused; /* ICMP "port unreachable" received; sockets bound to one address only */
} xl_udp_stats;

/* NULL with errno set. */
xl_udp *xl_udp_new(void);
void xl_udp_free(xl_udp *); /* closes the sockets; NULL is fine */

/* Opens a socket bound to `local`; an all-zero ip is the wildcard of its family (IPv6: IPv6 only), port 0 lets the
 * kernel choose. *bound gets the address really bound. Returns the socket's index, or -errno. */
int xl_udp_add_socket(xl_udp *, const xl_addr *local, xl_addr *bound);

/* The same for a socket that is open and bound already, one of xl_udp_open_group(): takes it over, also on failure. */
int xl_udp_adopt_socket(xl_udp *, int fd, const xl_addr *bound);

/* Opens a socket for each worker of a deployment, all on one address, such that the kernel hands each datagram to the
 * socket of the worker that its destination CID belongs to (SO_REUSEPORT and a BPF program). The sockets must all stay
 * open, in whatever process, as long as one is used. 0 and fds[workers], or -errno. */
struct xl_deployment;
int xl_udp_open_group(const xl_addr *local, const struct xl_deployment *, int fds[], xl_addr *bound);

/* The kernel refuses to send from this socket's address (ENETDOWN, EADDRNOTAVAIL, ENETUNREACH and the like): its
 * interface seems to have gone. Until xl_udp_try_socket() says otherwise. */
bool xl_udp_is_refused(const xl_udp *, int socket);
/* Whether the address of the socket is there and has a route to `remote`, asked of the kernel without sending anything;
 * then the socket is as good as before. */
bool xl_udp_try_socket(xl_udp *, int socket, const xl_addr *remote);

/* One descriptor to wait on for all sockets: readable (EPOLLIN) when a datagram came, or when there is room again for
 * one that had to wait. */
int xl_udp_fd(const xl_udp *);

/* Hands the datagrams that wait in the sockets to the endpoint, and sends kept ones for which there is room now. Takes
 * a bounded number of datagrams; the descriptor stays readable while there are more. */
void xl_udp_receive(xl_udp *, xl_endpoint *, uint64_t now);
/* Sends what the endpoint has to send. Stops early when the kernel has no room; then the descriptor becomes readable.
 */
void xl_udp_flush(xl_udp *, xl_endpoint *, uint64_t now);

void xl_udp_get_stats(const xl_udp *, xl_udp_stats *);
/* CLOCK_MONOTONIC, microseconds. */
uint64_t xl_udp_now(void);
/* The random key of one endpoint (xl_config.random_key), from the system. 0 or -errno. */
int xl_udp_random_key(uint8_t key[XL_RANDOM_KEY_BYTES]);

XL_END_DECLS

#endif
