/* For tests: a client and a server in one process on a virtual clock, joined by links with delay, rate, loss,
 * reordering and outages. The client asks for n bytes on a stream (8 bytes, big endian), the server answers with a
 * pattern that the client checks. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "connection/connection.h"
#include "testing/random.h"
#include "endpoint/endpoint.h"

#define PAIR_MTU      1452
#define PAIR_REQUESTS 64
#define PAIR_PATHS    4
#define PAIR_START    1000000 /* time 0 would hide "never" bugs */

typedef struct pair_link {
    xl_addr client, server;
    xl_addr nat;             /* address that the server sees instead of `client`; family 0: none */
    uint64_t delay_us[2];    /* 0: client to server, 1: server to client */
    uint64_t bytes_per_s[2]; /* 0 = unlimited */
    uint64_t queue_us;       /* longest queueing delay; beyond it packets are dropped; 0 = no limit */
    double loss, reorder;    /* probability; a reordered packet comes up to one more delay later */
    bool dark[2];
    uint64_t busy_until[2];
    uint64_t packets[2], bytes[2];
    double early_drop;            /* probability of a drop at a full queue, less in proportion at a shorter one */
    struct pair_link *bottleneck; /* link whose rate and queue it shares, possibly another pair's; NULL: its own */
    uint64_t longest_wait_us;     /* of a packet in its queue */
    size_t mtu;                   /* longer datagrams are dropped silently; 0: none are */
    double ce;                    /* probability that a datagram marked ECT comes with CE */
    bool bleaches, drops_marked;  /* sets the ECN field to 0; drops marked datagrams */
    uint64_t marked[2];           /* datagrams that were sent with a mark */
} pair_link;

typedef struct pair_datagram {
    struct pair_datagram *next;
    uint64_t at, order;
    bool to_server;
    xl_datagram d;
    uint8_t data[PAIR_MTU + 64];
} pair_datagram;

typedef struct {
    uint64_t id, size, received, started, done_at, first_at;
    bool used, done, failed;
} pair_request;

typedef struct {
    uint64_t id, size, sent;
    bool used, has_request;
    uint8_t ask[8];
    size_t ask_len;
} pair_response;

typedef struct {
    char *text; /* a string, or NULL */
    size_t len, room;
} pair_log;

typedef struct {
    uint64_t now, order;
    xl_random random;
    xl_config client_config, server_config;
    xl_credentials *client_credentials, *server_credentials;
    xl_endpoint *client, *server;
    xl_connection *cc, *sc;
    size_t link_count;
    pair_link link[PAIR_PATHS];
    pair_datagram *queue;
    pair_request request[PAIR_REQUESTS];
    pair_response response[PAIR_REQUESTS];
    bool client_closed, server_closed;
    xl_event client_close, server_close;
    unsigned client_migrations, server_migrations, path_events[6];
    uint64_t stream_events;
    unsigned datagrams_acked, datagrams_lost; /* events of either side */
    xl_frame_mark mark;                       /* size > 0: set with every response */
    xl_addr unreachable;                      /* an address of the server: datagrams to it or from it are lost */
    void (*tamper)(void *user, bool to_server, uint8_t *data, size_t len);
    void *tamper_user;
    pair_log qlog; /* the server's, which schedules */
} pair;

static inline xl_addr pair_addr(uint8_t host, uint16_t port) {
    return (xl_addr){.family = 4, .ip = {10, 0, 0, host}, .port = port};
}

/* In both directions. queue_us: longest queueing delay; 0: no limit. */
static inline void pair_limit(pair_link *l, uint64_t bytes_per_s, uint64_t queue_us) {
    l->bytes_per_s[0] = l->bytes_per_s[1] = bytes_per_s;
    l->queue_us = queue_us;
}

static inline void pair_delay(pair_link *l, uint64_t one_way_us) {
    l->delay_us[0] = l->delay_us[1] = one_way_us;
}

static inline void pair_set_dark(pair_link *l, bool is_dark) {
    l->dark[0] = l->dark[1] = is_dark;
}

void pair_log_write(void *sink, const char *text, size_t len);
void pair_seed(xl_config *config, uint64_t seed);

/* Configure p->client_config, p->server_config and links after this, before pair_connect(). */
void pair_init(pair *p, uint64_t seed, size_t links, uint64_t delay_us);
void pair_multipath(pair *p, const char *scheduler, const char *reinjection);
void pair_init_multipath(pair *p, uint64_t seed, size_t links, uint64_t delay_us); /* by minrtt, without copies */
void pair_capture_qlog(pair *p);
void pair_connect(pair *p);
void pair_free(pair *p);

#define PAIR_TEST(name) TEST_OF(name, pair, p, pair_free)
/* The same for each value of the variable from `from` to before `end`, each with a pair of its own. */
#define PAIR_TEST_EACH(name, type, variable, from, end)                                                                \
    static void name##_each(pair *p, type variable);                                                                   \
    TEST(name) {                                                                                                       \
        for (type variable = (from); variable < (end); variable++) {                                                   \
            pair p;                                                                                                    \
            name##_each(&p, variable);                                                                                 \
            pair_free(&p);                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_each(pair *p, type variable)

pair_link *pair_link_of(pair *p, const xl_addr *client);
void pair_enqueue(pair *p, bool to_server, const xl_datagram *d, const uint8_t *data);
/* Delivers a datagram of the test's own making to one end now, as if it came over this link. */
void pair_inject(pair *p, bool to_server, const pair_link *l, uint8_t *data, size_t len);
void pair_drop_queue(pair *p); /* loses all datagrams in transit */
void pair_events(pair *p);
void pair_flush(pair *p);

/* Delivers the datagrams that have arrived by now. */
void pair_deliver_due(pair *p);

/* Time of the next event; XL_NEVER: none. */
uint64_t pair_next(const pair *p);

/* Jumps to the next event. False: there will be none. */
bool pair_step(pair *p);

/* Runs for this long on the virtual clock. */
void pair_run(pair *p, uint64_t duration_us);
size_t pair_ask(pair *p, uint64_t size);

/* Runs until the handshake is complete on both sides. */
void pair_handshake(pair *p);
void pair_establish(pair *p);
void pair_settle(pair *p, uint64_t duration_us); /* establishes, and runs for this long afterwards */

/* Runs until request i is complete. Returns its completion time in µs, or UINT64_MAX if limit_us passed first. */
uint64_t pair_finish(pair *p, size_t i, uint64_t limit_us);

/* Requests `size` bytes, which must be complete before the limit. */
void pair_transfer(pair *p, uint64_t size, uint64_t limit_us);
xl_path_stats pair_server_path(pair *p, size_t i);
