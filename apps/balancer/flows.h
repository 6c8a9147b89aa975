/* The flows of a balancer. A flow has a client's address, a server, and the socket for this client's datagrams to that
 * server. The table is bounded, and traffic from forged addresses cannot evict the flows of real connections: a flow is
 * new until its client has used a CID of the server after the server has sent something. If the table is full, or half
 * of it is new flows, the new flow that was unused for the longest time is evicted. Established flows end only when
 * they are idle, or when their server is removed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

typedef struct flow {
    xl_addr client, local; /* local: the balancer's address that the client uses */
    size_t server;
    int fd;
    bool answered; /* the server has sent something */
    bool established;
    uint64_t used_at;
    struct flow *chain;           /* next in its bucket */
    struct flow *previous, *next; /* in the list of new or established flows, in order of use */
} flow;

typedef struct flows flows;

typedef struct {
    uint64_t opened, established, expired, evicted, refused; /* refused: there was no new flow to evict */
    size_t now, most;
} flows_stats;

/* closed() is called before a flow is freed, and must close its socket. Returns NULL without memory. */
flows *flows_new(size_t most, uint64_t new_timeout_us, uint64_t idle_timeout_us, uint64_t hash_key,
                 void (*closed)(void *user, flow *), void *user);
void flows_free(flows *); /* accepts NULL */

flow *flows_find(const flows *, const xl_addr *client, const xl_addr *local, size_t server);
/* Adds a flow with fd -1, if necessary after evicting another. NULL: no room, or no memory. */
flow *flows_add(flows *, const xl_addr *client, const xl_addr *local, size_t server, uint64_t now);
void flows_remove(flows *, flow *);
/* Evicts the new flow other than `keep` that was unused for the longest time. False: there is none. */
bool flows_evict(flows *, const flow *keep);
/* Notes a datagram of the client. by_cid: with a CID of the server. */
void flows_used_by_client(flows *, flow *, bool by_cid, uint64_t now);
void flows_used_by_server(flows *, flow *, uint64_t now);
/* Closes flows that were idle for too long. Returns when to call it again; XL_NEVER: no flows. */
uint64_t flows_expire(flows *, uint64_t now);
/* Applies the servers' new indices of router_update(), and closes flows of removed servers. */
void flows_move(flows *, const size_t moved[]);
void flows_get_stats(const flows *, flows_stats *);
