/* Internals of the endpoint: a datagram's connection, accepting, Retry, version negotiation, stateless reset. */
#pragma once

#include "connection/connection.h"
#include "crypto/outstanding.h"
#include "endpoint/cid_map.h"
#include "endpoint/clients.h"
#include "endpoint/retry.h"
#include "endpoint/timer_heap.h"
#include "endpoint/tokens.h"
#include "xlink/deployment.h"

#define XL_STATELESS_MAX 256 /* queued answers that belong to no connection */

typedef struct {
    xl_datagram to;
    uint8_t data[XL_RETRY_MAX_BYTES];
} xl_stateless;

/* A 0-RTT packet that came before its ClientHello (RFC 9001 section 5.7). It is kept for XL_HELD_US, or until a newer
 * packet takes its place. */
#define XL_HELD_MAX   16
#define XL_HELD_BYTES 1500
#define XL_HELD_US    200000

typedef struct {
    xl_datagram head; /* len 0: unused */
    xl_cid dcid;
    uint64_t until;
    uint8_t data[XL_HELD_BYTES];
} xl_held;

/* Purposes of random values, each with a generator of its own. */
typedef enum {
    XL_PURPOSE_CIDS,
    XL_PURPOSE_CHALLENGES,
    XL_PURPOSE_SKIPS,
    XL_PURPOSE_FIRST_NUMBERS,
    XL_PURPOSE_RESETS,
    XL_PURPOSE_HEADERS,
    XL_PURPOSE_TOKENS,
    XL_PURPOSES,
} xl_purpose;

typedef struct {
    xl_event event;    /* connection NULL: it was freed before the event was polled */
    uint64_t previous; /* number of the connection's previous event; 0: none */
} xl_queued_event;

struct xl_endpoint {
    xl_config config;
    const struct xl_foresight *foresight; /* in a simulator; NULL elsewhere */
    char *alpn;                           /* owned copy of config.alpn */
    xl_drbg *generator[XL_PURPOSES];
    uint64_t connections_begun; /* numbers the connections' random streams, from 1; 0 is the endpoint's */
    xl_drbg_stream stray_cids;  /* CIDs of Retry packets */
    xl_drbg_stream resets;      /* length and padding of stateless resets */
    xl_drbg_stream headers;     /* unused bits of Version Negotiation and Retry */
    xl_drbg_stream tokens;      /* nonces of NEW_TOKEN */
    uint64_t now;               /* time of the current call */
    xl_held *held;              /* server with 0-RTT: XL_HELD_MAX packets */
    size_t held_next;
    xl_outstanding *used_tokens; /* server: the latest tokens of NEW_TOKEN that were used; NULL: none yet */
    xl_static_keys keys;
    size_t half_open; /* server: connections whose handshake is not complete */
    xl_clients clients;
    uint64_t refusals_since; /* start of the second in which refusals are counted */
    unsigned refusals;
    xl_cid_map map;
    xl_cid_map reset_tokens; /* server: its peers' tokens, for the connection IDs in use */
    xl_connection **connection;
    size_t count, cap;
    xl_budget_pool send_pool;
    xl_timer_heap timers;
    xl_connection *ready_head, *ready_tail;
    xl_queued_event *event;          /* ring: event number n is at n % event_cap */
    uint64_t event_head, event_next; /* event numbers, from 1: oldest in the queue, next to be added */
    size_t event_cap;
    xl_stateless stateless[XL_STATELESS_MAX];
    size_t stateless_count;
    xl_endpoint_stats stats;
};

/* The date of tokens, µs, which continues when the machine restarts. */
static inline uint64_t xl_endpoint_date(const xl_endpoint *ep, uint64_t now) {
    return ep->config.epoch_us + now;
}
