/* The sockets of the balancer: one for all clients, one for each flow to its server, and one for probes to each server.
 */
#pragma once

#include "balancer/flows.h"
#include "balancer/health.h"
#include "balancer/router.h"

typedef struct {
    xl_addr listen;
    size_t max_flows;
    uint64_t idle_timeout_us;
    uint64_t probe_interval_us; /* 0: no probes */
    /* Called when a server goes down or up again. May be NULL. */
    void (*changed)(void *user, const lb_server *, bool is_up, uint64_t now);
    void *user;
} forwarder_options;

typedef struct {
    uint64_t kinds[ROUTE_KINDS]; /* datagrams of clients, by decision */
    uint64_t unsent;             /* datagrams that were not sent, in both directions, and too long ones of servers */
    uint64_t no_flow;            /* datagrams without a flow: no room in the table, or no socket */
    uint64_t to_server[LB_SERVERS_MAX], from_server[LB_SERVERS_MAX]; /* those of servers may be unsent later */
} forwarder_stats;

typedef struct forwarder forwarder;

/* Returns NULL with a phrase in error[LB_ERROR_BYTES] on failure. *bound receives the bound address. */
forwarder *forwarder_new(const forwarder_options *, const lb_file *, xl_addr *bound, uint64_t now, char *error);
void forwarder_free(forwarder *); /* accepts NULL */

int forwarder_fd(const forwarder *); /* readable when forwarder_step() has something to do */
/* Forwards received datagrams, a bounded number. */
void forwarder_step(forwarder *, uint64_t now);
/* Closes idle flows and sends probes. Returns when to call it again. */
uint64_t forwarder_tick(forwarder *, uint64_t now);
bool forwarder_update(forwarder *, const lb_file *, uint64_t now);

const lb_file *forwarder_file(const forwarder *);
void forwarder_get_stats(const forwarder *, forwarder_stats *, flows_stats *);
