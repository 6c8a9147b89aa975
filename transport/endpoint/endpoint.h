/* The endpoint, inside: which connection a datagram belongs to, accepting, Retry, version negotiation,
 * stateless reset. */
#ifndef XL_ENDPOINT_ENDPOINT_H
#define XL_ENDPOINT_ENDPOINT_H

#include "connection/connection.h"
#include "endpoint/cid_map.h"
#include "endpoint/retry.h"
#include "endpoint/timer_heap.h"
#include "xlink/deployment.h"

#define XL_SCHEME_NAMES  3
#define XL_STATELESS_MAX 256 /* answers waiting that belong to no connection */

typedef struct {
    xl_datagram to;
    uint8_t data[XL_RETRY_MAX_BYTES];
} xl_stateless;

typedef struct {
    xl_event event;    /* connection NULL: it was freed before its event was asked for */
    uint64_t previous; /* number of its connection's event before; 0 = none */
} xl_queued_event;

struct xl_endpoint {
    xl_config config;
    char *alpn, *names[XL_SCHEME_NAMES]; /* owned copies of the strings of config */
    xl_random random;
    uint8_t reset_key[32];
    uint8_t retry_key[XL_RETRY_KEY_BYTES];
    size_t half_open; /* server: connections whose handshake is not complete */
    xl_cid_map map;
    xl_connection **connection;
    size_t count, cap;
    xl_budget_pool send_pool;
    xl_timer_heap timers;
    xl_connection *ready_head, *ready_tail;
    xl_queued_event *event;          /* ring: event number n is at n % event_cap */
    uint64_t event_head, event_next; /* numbers, from 1: the oldest that waits, the next to come */
    size_t event_cap;
    xl_stateless stateless[XL_STATELESS_MAX];
    size_t stateless_count;
    xl_endpoint_stats stats;
};

#endif
