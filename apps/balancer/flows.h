/* The flows of a balancer: a client's address and a server, and the socket through which the balancer speaks to that
 * server for that client. The table is bounded, and traffic from forged addresses cannot push out the flows of real
 * connections: a flow is new until its client has answered something that the server sent, by a CID of that server;
 * when the table is full, or half of it is new flows, the new flow unused for longest makes room. Established flows end
 * by idleness alone. */
#ifndef BALANCER_FLOWS_H
#define BALANCER_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

typedef struct flow {
    xl_addr client, local; /* local: the balancer's address that the client speaks to */
    size_t server;
    int fd;
    bool answered; /* the server has sent something */
    bool established;
    uint64_t used_at;
    struct flow *chain;           /* in its bucket */
    struct flow *previous, *next; /* in its class, in order of use */
} flow;

typedef struct flows flows;

typedef struct {
    uint64_t opened, established, expired, evicted, refused; /* refused: the table was full of established ones */
    size_t now, most;
} flows_stats;

/* closed() is called for every flow that goes, before it is freed: close its socket. NULL: out of memory. */
flows *flows_new(size_t most, uint64_t new_timeout_us, uint64_t idle_timeout_us, uint64_t hash_key,
                 void (*closed)(void *user, flow *), void *user);
void flows_free(flows *); /* NULL is fine */

flow *flows_find(const flows *, const xl_addr *client, const xl_addr *local, size_t server);
/* Adds one (fd -1), after making room for it. NULL when there is no room. */
flow *flows_add(flows *, const xl_addr *client, const xl_addr *local, size_t server, uint64_t now);
void flows_remove(flows *, flow *);
/* Removes the new flow that is unused for longest, but not `keep`. False: there is none. */
bool flows_evict(flows *, const flow *keep);
/* The client sent something; by_cid: with a CID of the server's. */
void flows_used_by_client(flows *, flow *, bool by_cid, uint64_t now);
void flows_used_by_server(flows *, flow *, uint64_t now);
/* Closes flows that were idle for too long; says when to call again, XL_NEVER without flows. */
uint64_t flows_expire(flows *, uint64_t now);
/* Servers have new indices, as router_update() says; flows of those that are gone are closed. */
void flows_move(flows *, const size_t moved[]);
void flows_get_stats(const flows *, flows_stats *);

#endif
