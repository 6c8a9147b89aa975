/* Which server a datagram goes to: sans-IO, no state for each connection.
 *
 * A datagram whose destination CID decodes to the ID of a server goes there, whatever address it comes from. Others,
 * above all a client's first ones, whose CID the client chose, go by rendezvous hashing of the CID (Thaler, Ravishankar
 * 1998): a server that joins or leaves moves its own share only. A table of bounded size remembers these choices for a
 * while, so that a handshake is not torn apart by a change; it is overwritten when full, and then the hash decides
 * again.
 */
#ifndef BALANCER_ROUTER_H
#define BALANCER_ROUTER_H

#include "balancer/lb_file.h"

typedef struct router router;

typedef enum {
    ROUTE_BY_CID,
    ROUTE_BY_HASH,
    ROUTE_DROP_MALFORMED, /* not a QUIC packet that a server would take */
    ROUTE_DROP_SMALL,     /* a client's first datagram is at least 1200 bytes (RFC 9000 section 14.1) */
    ROUTE_DROP_NO_SERVER, /* there is none that takes new connections */
    ROUTE_KINDS
} route_kind;
const char *route_kind_name(route_kind);

typedef struct {
    route_kind kind;
    size_t server; /* index in the file's list */
} route;

/* The file is copied. NULL: out of memory. */
router *router_new(const lb_file *);
void router_free(router *); /* NULL is fine */
const lb_file *router_file(const router *);
route router_route(router *, const xl_addr *client, const uint8_t *data, size_t len, uint64_t now);

/* A server that is down gets new clients only when all are. All are up at first, and after an update. */
void router_set_down(router *, size_t server, bool is_down);

/* A new list of servers, or new configurations. moved[i], of LB_SERVERS_MAX, becomes the new index of the server that
 * had index i, SIZE_MAX when it is gone. False, and nothing has changed, when memory is short. */
bool router_update(router *, const lb_file *, size_t moved[]);

#endif
