/* For tests: a server that keeps running, and clients that come one after the other with the session that they stored.
 * Included by test programs; every function is static. */
#pragma once

#include "connection/early.h"
#include "testing/pair.h"
#include "testing/session_store.h"
#include "crypto/credentials.h"
#include "crypto/session.h"
#include "endpoint/tokens.h"
#include "wire/frame.h"

typedef struct {
    pair p;
    store kept;
    bool client_early;
} world;

/* The time of day follows the virtual clock. */
#define MIDNIGHT_NS UINT64_C(1700000000000000000)

static const pair *clock_of;
static uint64_t set_back_ns;

static inline uint64_t time_of_day_ns(void) {
    return MIDNIGHT_NS + clock_of->now * 1000 - set_back_ns;
}

static inline void world_init(world *w, uint64_t seed) {
    static const uint8_t ticket_key[XL_TICKET_KEY_BYTES] = {1, 2, 3};
    memset(w, 0, sizeof *w);
    clock_of = &w->p;
    set_back_ns = 0;
    xl_set_time_of_day(time_of_day_ns);
    pair_init(&w->p, seed, 1, 20000);
    const xl_sessions sessions = {.user = &w->kept, .save = save, .load = load};
    assert_int_equal(0, xl_credentials_keep_sessions(w->p.client_credentials, &sessions));
    assert_int_equal(0, xl_credentials_allow_early_data(w->p.client_credentials));
    assert_int_equal(0, xl_credentials_issue_tickets(w->p.server_credentials, ticket_key));
}

static inline void world_free(world *w) {
    pair_free(&w->p);
}

#define WORLD_TEST(name) TEST_OF(name, world, w, world_free)

static inline void world_accepts(world *w) {
    assert_int_equal(0, xl_credentials_allow_early_data(w->p.server_credentials));
}

/* The first connection, which brings the session. */
static inline void meet(world *w) {
    pair_settle(&w->p, 500000);
    assert_true(w->kept.len > 0);
}

/* A server that accepts early data, and a client that has its session. */
static inline void world_known(world *w, uint64_t seed) {
    world_init(w, seed);
    world_accepts(w);
    meet(w);
}

static inline void forget_requests(pair *p) {
    memset(p->request, 0, sizeof p->request);
    memset(p->response, 0, sizeof p->response);
    p->sc = NULL;
    p->client_closed = p->server_closed = false;
}

/* A new client of the same server, after the old one has gone silently. */
static inline void come_back(world *w) {
    pair *p = &w->p;
    int error;
    xl_endpoint_free(p->client);
    pair_drop_queue(p);
    forget_requests(p);
    p->now += 1000000;
    p->link[0].client.port++;
    p->client_config.random_key[3]++;
    p->client = xl_endpoint_new(&p->client_config, p->now, &error);
    p->cc = xl_endpoint_connect(p->client, "localhost", &p->link[0].client, &p->link[0].server, XL_TECH_WIFI, p->now);
    assert_non_null(p->cc);
}

static inline bool early_event(pair *p) {
    xl_event e;
    bool was_early = false;
    while (xl_endpoint_poll_event(p->client, &e))
        was_early |= e.type == XL_EVENT_EARLY;
    return was_early;
}

/* Runs until the request is answered, perhaps before the handshake is complete. Returns the time that it took, µs. */
static inline uint64_t finish(world *w, size_t i) {
    uint64_t took = pair_finish(&w->p, i, 10000000);
    assert_true(took != UINT64_MAX);
    return took;
}
