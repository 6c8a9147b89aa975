/* The sockets of the balancer: one that clients speak to, one for each flow towards its server, one for each server to
 * ask whether it is there. */
#ifndef BALANCER_FORWARDER_H
#define BALANCER_FORWARDER_H

#include "balancer/flows.h"
#include "balancer/health.h"
#include "balancer/router.h"

typedef struct {
    xl_addr listen;
    size_t max_flows;
    uint64_t idle_timeout_us;
    uint64_t probe_interval_us; /* 0: servers are not asked */
    /* A server went down, or came up again. May be NULL. */
    void (*changed)(void *user, const lb_server *, bool is_up, uint64_t now);
    void *user;
} forwarder_options;

typedef struct {
    uint64_t kinds[ROUTE_KINDS]; /* datagrams of clients, by what was decided */
    uint64_t unsent;             /* datagrams that the kernel did not take, in either direction */
    uint64_t no_flow;            /* datagrams for which there was no room in the table */
    uint64_t to_server[LB_SERVERS_MAX], from_server[LB_SERVERS_MAX];
} forwarder_stats;

typedef struct forwarder forwarder;

/* NULL with one phrase in error[LB_ERROR_BYTES]. *bound gets the address really bound. */
forwarder *forwarder_new(const forwarder_options *, const lb_file *, xl_addr *bound, uint64_t now, char *error);
void forwarder_free(forwarder *); /* NULL is fine */

int forwarder_fd(const forwarder *); /* readable when there is something to do */
/* Forwards what has come, a bounded number of datagrams. */
void forwarder_step(forwarder *, uint64_t now);
/* Closes idle flows, asks the servers; returns when to call again. */
uint64_t forwarder_tick(forwarder *, uint64_t now);
bool forwarder_update(forwarder *, const lb_file *, uint64_t now);

const lb_file *forwarder_file(const forwarder *);
void forwarder_get_stats(const forwarder *, forwarder_stats *, flows_stats *);

#endif
