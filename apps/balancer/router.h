/* Selects the server of a datagram, sans-IO, without state per connection.
 *
 * A datagram whose destination CID decodes to a server ID goes to that server, regardless of its source address. For
 * others, mostly a client's first datagrams with a random CID, the server is selected by rendezvous hashing of the CID
 * (Thaler, Ravishankar 1998): if a server joins or leaves, only its own share moves. A hash table of fixed size keeps
 * these choices for a while, so that a change does not split a handshake. Entries that collide overwrite each other;
 * then the hash decides again. */
#pragma once

#include "balancer/lb_file.h"

typedef struct router router;

typedef enum {
    ROUTE_BY_CID,
    ROUTE_BY_HASH,
    ROUTE_DROP_MALFORMED, /* not a QUIC packet that a server accepts */
    ROUTE_DROP_SMALL,     /* a client's first datagram has at least 1200 bytes (RFC 9000 section 14.1) */
    ROUTE_DROP_NO_SERVER, /* no server takes new connections */
    ROUTE_KINDS
} route_kind;
const char *route_kind_name(route_kind);

typedef struct {
    route_kind kind;
    size_t server; /* index in lb_file.server */
} route;

/* Copies the file. Returns NULL without memory. */
router *router_new(const lb_file *);
void router_free(router *); /* accepts NULL */
const lb_file *router_file(const router *);
route router_route(router *, const xl_addr *client, const uint8_t *data, size_t len, uint64_t now);

/* A server that is down gets new clients only if all are down. All are up at first, and after an update. */
void router_set_down(router *, size_t server, bool is_down);

/* Replaces servers and configurations. moved[LB_SERVERS_MAX] receives the new index of each old one; SIZE_MAX: removed.
 * False: out of memory; nothing has changed. */
bool router_update(router *, const lb_file *, size_t moved[]);
