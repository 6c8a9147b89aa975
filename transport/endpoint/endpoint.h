/* The endpoint, inside: which connection a datagram belongs to, accepting, Retry, version negotiation,
 * stateless reset. */
#ifndef XL_ENDPOINT_ENDPOINT_H
#define XL_ENDPOINT_ENDPOINT_H

#include "connection/connection.h"
#include "crypto/outstanding.h"
#include "endpoint/cid_map.h"
#include "endpoint/clients.h"
#include "endpoint/retry.h"
#include "endpoint/timer_heap.h"
#include "endpoint/tokens.h"
#include "xlink/deployment.h"

#define XL_SCHEME_NAMES  3
#define XL_STATELESS_MAX 256 /* answers waiting that belong to no connection */

typedef struct {
    xl_datagram to;
    uint8_t data[XL_RETRY_MAX_BYTES];
} xl_stateless;

/* A 0-RTT packet that came before its ClientHello (RFC 9001 section 5.7): kept for a moment, the oldest makes room. */
#define XL_HELD_MAX   16
#define XL_HELD_BYTES 1500
#define XL_HELD_US    200000

typedef struct {
    xl_datagram head; /* len 0: free */
    xl_cid dcid;
    uint64_t until;
    uint8_t data[XL_HELD_BYTES];
} xl_held;

/* What is drawn by chance, each by a generator of its own. */
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
    xl_event event;    /* connection NULL: it was freed before its event was asked for */
    uint64_t previous; /* number of its connection's event before; 0 = none */
} xl_queued_event;

struct xl_endpoint {
    xl_config config;
    const struct xl_foresight *foresight; /* in a simulator; NULL elsewhere */
    char *alpn, *names[XL_SCHEME_NAMES];  /* owned copies of the strings of config */
    xl_drbg *generator[XL_PURPOSES];
    uint64_t connections_begun; /* numbers their streams, from 1; streams of number 0 are the endpoint's own … */
    xl_drbg_stream stray_cids;  /* … of Retry packets */
    xl_drbg_stream resets;      /* length and padding of stateless resets */
    xl_drbg_stream headers;     /* bits without meaning, of Version Negotiation and Retry */
    xl_drbg_stream tokens;      /* nonces of NEW_TOKEN */
    uint64_t now;               /* of the running call */
    xl_held *held;              /* server with 0-RTT: XL_HELD_MAX */
    size_t held_next;
    xl_outstanding *used_tokens; /* server: of NEW_TOKEN, the newest that came; NULL: none yet */
    xl_static_keys keys;
    size_t half_open; /* server: connections whose handshake is not complete */
    xl_clients clients;
    uint64_t refusals_since; /* refusals are counted from then on, for a second */
    unsigned refusals;
    xl_cid_map map;
    xl_cid_map reset_tokens; /* server: of its peers, those of connection IDs in use */
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

/* What tokens are dated by: it goes on when the machine starts again. */
static inline uint64_t xl_endpoint_date(const xl_endpoint *ep, uint64_t now) {
    return ep->config.epoch_us + now;
}

#endif
