#include "endpoint/endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "connection/path_table.h"
#include "connection/receive.h"
#include "connection/room.h"
#include "connection/state.h"
#include "connection/transmit.h"

#define MIN_INITIAL_DCID    8
#define MAKE_CID_TRIES      16
#define CONN_SEND_BYTES     ((size_t)16 << 20)
#define ALL_SEND_BYTES      ((size_t)256 << 20)
#define PACKETS_PER_KEY_MIN 64
#define REFUSALS_US         1000000
#define REFUSALS_MOST       1000
#define RESET_MIN           22 /* a stateless reset has at least 21 bytes and is shorter than what it answers (10.3) */

void xl_scheme_init(xl_scheme *s) {
    *s = (xl_scheme){.scheduler = "minrtt",
                     .reinjection = "none",
                     .congestion = "cubic-tolerant",
                     .t_th1_us = 500000,
                     .t_th2_us = 2000000,
                     .rescue_gain_us = 50000,
                     .rescue_permille = 15,
                     .max_reinjections = 1,
                     .suspect = true,
                     .qoe_extrapolation = true,
                     .qoe_carrier = XL_QOE_IN_ACK};
}

void xl_limits_init(xl_limits *l) {
    *l = (xl_limits){.idle_timeout_us = 30000000,
                     .handshake_timeout_us = 30000000,
                     .confirm_timeout_us = 10000000,
                     .max_data = 16 << 20,
                     .max_stream_data = 6 << 20,
                     .max_streams_bidi = 100,
                     .max_streams_uni = 16,
                     .send_buffer_bytes = 4 << 20,
                     .max_udp_payload_bytes = XL_MIN_DATAGRAM,
                     .path_mtu_bytes = XL_MIN_DATAGRAM,
                     .max_connections = 1024,
                     .retry_above = 256,
                     .standby_probe_us = 1000000,
                     .datagram_queue_bytes = 64 << 10,
                     .path_management = {.rtt_percent = 400,
                                         .loss_percent = 10,
                                         .degraded_us = 1000000,
                                         .recovered_us = 2000000,
                                         .abandon_us = 10000000,
                                         .reopen_us = 1000000}};
}

void xl_config_init(xl_config *c) {
    *c = (xl_config){.alpn = "h3"};
    xl_scheme_init(&c->scheme);
    xl_limits_init(&c->limits);
}

const char *xl_version(void) {
    return XL_VERSION;
}

/* ---- What connections ask ---- */

static xl_queued_event *event_number(const xl_endpoint *ep, uint64_t n) {
    return &ep->event[n % ep->event_cap];
}

static bool grow_events(xl_endpoint *ep) {
    size_t cap = ep->event_cap ? 2 * ep->event_cap : 64;
    xl_queued_event *grown = malloc(cap * sizeof(*grown));
    if (!grown)
        return false;
    for (uint64_t n = ep->event_head; n < ep->event_next; n++)
        grown[n % cap] = *event_number(ep, n);
    free(ep->event);
    ep->event = grown;
    ep->event_cap = cap;
    return true;
}

/* A client that completes its handshake has received what was sent to its address. */
static void prove(xl_connection *c) {
    if (c->slot.client && !c->slot.is_proven)
        xl_clients_prove(c->slot.client);
    c->slot.is_proven = true;
}

static void on_event(void *user, const xl_event *e) {
    xl_endpoint *ep = user;
    if (e->type == XL_EVENT_CONNECTED && ep->config.is_server) {
        ep->half_open--;
        prove(e->connection);
    }
    if (ep->event_next - ep->event_head == ep->event_cap && !grow_events(ep))
        return;
    *event_number(ep, ep->event_next) = (xl_queued_event){*e, e->connection->slot.last_event};
    e->connection->slot.last_event = ep->event_next++;
}

/* Those at the end are taken back: a flood of first packets that are not genuine shall not grow the queue. */
static void forget_events(xl_endpoint *ep, const xl_connection *c) {
    for (uint64_t n = c->slot.last_event; n >= ep->event_head; n = event_number(ep, n)->previous)
        event_number(ep, n)->event.connection = NULL;
    while (ep->event_next > ep->event_head && !event_number(ep, ep->event_next - 1)->event.connection)
        ep->event_next--;
}

/* A CID that collides with one in use is made again: with the shortest nonce that does happen. */
static void on_make_cid(void *user, xl_drbg_stream *random, xl_cid *cid) {
    xl_endpoint *ep = user;
    const xl_deployment *d = ep->config.deployment;
    if (!d) {
        cid->len = XL_LOCAL_CID_BYTES;
        xl_drbg_bytes(random, cid->id, cid->len);
        return;
    }
    int tries = 0;
    do {
        uint8_t drawn[XL_LB_NONCE_MAX + 1];
        xl_drbg_bytes(random, drawn, sizeof(drawn));
        *cid = (xl_cid){0};
        cid->len = (uint8_t)xl_deployment_make_cid(d, drawn, drawn[XL_LB_NONCE_MAX], cid->id);
    } while (xl_cid_map_get(&ep->map, cid) && ++tries < MAKE_CID_TRIES);
}

static int on_cid_added(void *user, const xl_cid *cid, xl_connection *c) {
    xl_endpoint *ep = user;
    return xl_cid_map_put(&ep->map, cid, c);
}

static void on_cid_removed(void *user, const xl_cid *cid) {
    xl_endpoint *ep = user;
    xl_cid_map_remove(&ep->map, cid);
}

static void on_wake(void *user, xl_connection *c) {
    xl_endpoint *ep = user;
    if (c->slot.is_ready)
        return;
    c->slot.is_ready = true;
    c->slot.ready_next = NULL;
    c->slot.ready_prev = ep->ready_tail;
    if (ep->ready_tail)
        ep->ready_tail->slot.ready_next = c;
    else
        ep->ready_head = c;
    ep->ready_tail = c;
}

static void on_touched(void *user, xl_connection *c) {
    xl_endpoint *ep = user;
    xl_timer_heap_touch(&ep->timers, c);
}

/* Without a token nothing is issued and nothing reset: any other bytes in its place could be known to others. */
static int on_reset_token(void *user, const xl_cid *cid, uint8_t token[16]) {
    xl_endpoint *ep = user;
    return xl_hmac(ep->keys.reset, sizeof(ep->keys.reset), cid->id, cid->len, token, 16) == 0 ? 0 : XL_ERR_CRYPTO;
}

static int on_make_token(void *user, const xl_addr *client, uint8_t token[XL_NEW_TOKEN_BYTES]) {
    xl_endpoint *ep = user;
    uint8_t nonce[XL_TOKEN_NONCE_BYTES];
    xl_drbg_bytes(&ep->tokens, nonce, sizeof(nonce));
    return xl_token_make(ep->keys.retry, nonce, client, ep->now, token) == 0 ? 0 : XL_ERR_CRYPTO;
}

static void unready(xl_endpoint *ep, xl_connection *c) {
    if (!c->slot.is_ready)
        return;
    if (c->slot.ready_prev)
        c->slot.ready_prev->slot.ready_next = c->slot.ready_next;
    else
        ep->ready_head = c->slot.ready_next;
    if (c->slot.ready_next)
        c->slot.ready_next->slot.ready_prev = c->slot.ready_prev;
    else
        ep->ready_tail = c->slot.ready_prev;
    c->slot.is_ready = false;
}

static xl_connection *pop_ready(xl_endpoint *ep) {
    xl_connection *c = ep->ready_head;
    if (c)
        unready(ep, c);
    return c;
}

/* ---- Life ---- */

static bool keep_name(char **slot, const char **name, const char *otherwise) {
    *slot = strdup(*name ? *name : otherwise);
    *name = *slot;
    return *slot != NULL;
}

static void free_names(char *names[XL_SCHEME_NAMES]) {
    for (size_t i = 0; i < XL_SCHEME_NAMES; i++)
        free(names[i]);
}

/* Fills in defaults; the strings become names[], to be freed also on failure. */
static int copy_scheme(const xl_scheme *scheme, xl_scheme *s, char *names[XL_SCHEME_NAMES]) {
    *s = *scheme;
    s->max_reinjections = s->max_reinjections ? s->max_reinjections : 1;
    if (!keep_name(&names[0], &s->scheduler, "minrtt") || !keep_name(&names[1], &s->reinjection, "none") ||
        !keep_name(&names[2], &s->congestion, "cubic-tolerant"))
        return XL_ERR_MEMORY;
    if (!xl_scheduler_find(s->scheduler) || !xl_reinjection_find(s->reinjection) || !xl_cc_find(s->congestion))
        return XL_ERR_ARGUMENT;
    return 0;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static int copy_limits(const xl_limits *limits, xl_limits *l) {
    xl_limits defaults;
    xl_limits_init(&defaults);
    *l = *limits;
#define DEFAULT(member) l->member = l->member ? l->member : defaults.member
    DEFAULT(idle_timeout_us);
    DEFAULT(handshake_timeout_us);
    DEFAULT(confirm_timeout_us);
    DEFAULT(max_data);
    DEFAULT(max_stream_data);
    DEFAULT(max_streams_bidi);
    DEFAULT(max_streams_uni);
    DEFAULT(send_buffer_bytes);
    DEFAULT(max_udp_payload_bytes);
    DEFAULT(path_mtu_bytes);
    DEFAULT(max_connections);
    DEFAULT(retry_above);
    DEFAULT(standby_probe_us);
    DEFAULT(datagram_queue_bytes);
    DEFAULT(path_management.rtt_percent);
    DEFAULT(path_management.loss_percent);
    DEFAULT(path_management.degraded_us);
    DEFAULT(path_management.recovered_us);
    DEFAULT(path_management.abandon_us);
    DEFAULT(path_management.reopen_us);
#undef DEFAULT
    if (!l->connection_send_bytes)
        l->connection_send_bytes = larger(CONN_SEND_BYTES, 4 * l->send_buffer_bytes);
    if (!l->endpoint_send_bytes)
        l->endpoint_send_bytes = larger(ALL_SEND_BYTES, 2 * l->connection_send_bytes);
    bool has_valid_size = l->max_udp_payload_bytes >= XL_MIN_DATAGRAM && l->max_udp_payload_bytes <= 65527;
    bool has_valid_keys = l->packets_per_key == 0 || l->packets_per_key >= PACKETS_PER_KEY_MIN;
    return has_valid_size && has_valid_keys ? 0 : XL_ERR_ARGUMENT;
}

static int copy_config(xl_endpoint *ep, const xl_config *config) {
    ep->config = *config;
    if (!keep_name(&ep->alpn, &ep->config.alpn, "h3"))
        return XL_ERR_MEMORY;
    int error = copy_scheme(&config->scheme, &ep->config.scheme, ep->names);
    if (error == 0)
        error = copy_limits(&config->limits, &ep->config.limits);
    if (error)
        return error;
    if (config->deployment && (!config->is_server || xl_deployment_check(config->deployment)))
        return XL_ERR_ARGUMENT;
    return config->credentials ? 0 : XL_ERR_ARGUMENT;
}

static bool is_zero(const uint8_t *bytes, size_t len) {
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++)
        any |= bytes[i];
    return any == 0;
}

static int open_generators(xl_endpoint *ep, const uint8_t *random_key) {
    static const char *const labels[XL_PURPOSES] = {
        [XL_PURPOSE_CIDS] = "connection IDs",        [XL_PURPOSE_CHALLENGES] = "path challenges",
        [XL_PURPOSE_SKIPS] = "packet number skips",  [XL_PURPOSE_RESETS] = "padding of stateless resets",
        [XL_PURPOSE_HEADERS] = "unused header bits", [XL_PURPOSE_TOKENS] = "nonces of tokens",
    };
    for (size_t i = 0; i < XL_PURPOSES; i++)
        if (!(ep->generator[i] = xl_drbg_new(random_key, labels[i])))
            return XL_ERR_CRYPTO;
    ep->stray_cids = xl_drbg_stream_of(ep->generator[XL_PURPOSE_CIDS], 0);
    ep->resets = xl_drbg_stream_of(ep->generator[XL_PURPOSE_RESETS], 0);
    ep->headers = xl_drbg_stream_of(ep->generator[XL_PURPOSE_HEADERS], 0);
    ep->tokens = xl_drbg_stream_of(ep->generator[XL_PURPOSE_TOKENS], 0);
    return 0;
}

/* All that is left to chance, from the configuration's key; what workers and successors share, from their secret. */
static int open_random(xl_endpoint *ep, const xl_config *config) {
    if (is_zero(config->random_key, sizeof(config->random_key)))
        return XL_ERR_ARGUMENT;
    uint64_t hash_key[2], client_key[2];
    int error = open_generators(ep, config->random_key);
    if (!error && config->deployment)
        ep->keys = config->deployment->keys;
    else if (!error)
        error = xl_static_keys_from(config->random_key, &ep->keys);
    if (!error)
        error = xl_random_subkey(config->random_key, "map of connection IDs", (uint8_t *)hash_key, sizeof(hash_key));
    if (!error)
        error = xl_random_subkey(config->random_key, "map of clients", (uint8_t *)client_key, sizeof(client_key));
    if (!error && config->is_server && config->limits.max_per_client)
        error = xl_clients_init(&ep->clients, ep->config.limits.max_connections, client_key);
    return error ? error : xl_cid_map_init(&ep->map, hash_key[0], hash_key[1]);
}

xl_endpoint *xl_endpoint_new(const xl_config *config, uint64_t now, int *error) {
    (void)now;
    xl_endpoint *ep = calloc(1, sizeof(*ep));
    if (ep)
        ep->event_head = ep->event_next = 1;
    *error = ep ? copy_config(ep, config) : XL_ERR_MEMORY;
    if (*error == 0) {
        xl_budget_pool_init(&ep->send_pool, ep->config.limits.endpoint_send_bytes, ep->config.limits.max_connections);
        memset(ep->config.random_key, 0, sizeof(ep->config.random_key)); /* what follows from it is enough */
        *error = open_random(ep, config);
    }
    if (*error == 0)
        return ep;
    if (ep)
        xl_endpoint_free(ep);
    return NULL;
}

int xl_endpoint_reconfigure(xl_endpoint *ep, const xl_scheme *scheme, uint64_t now) {
    xl_scheme fresh;
    char *names[XL_SCHEME_NAMES] = {NULL};
    int error = copy_scheme(scheme, &fresh, names);
    if (error) {
        free_names(names);
        return error;
    }
    free_names(ep->names);
    memcpy(ep->names, names, sizeof(names));
    ep->config.scheme = fresh;
    for (size_t i = 0; i < ep->count; i++)
        xl_conn_reconfigure(ep->connection[i], now);
    return 0;
}

void xl_endpoint_free(xl_endpoint *ep) {
    if (!ep)
        return;
    for (size_t i = 0; i < ep->count; i++)
        xl_conn_destroy(ep->connection[i]);
    free(ep->connection);
    if (ep->map.bucket)
        xl_cid_map_free(&ep->map);
    xl_clients_free(&ep->clients);
    free_names(ep->names);
    free(ep->alpn);
    for (size_t i = 0; i < XL_PURPOSES; i++)
        xl_drbg_free(ep->generator[i]);
    free(ep->event);
    free(ep->held);
    free(ep->used_tokens);
    xl_timer_heap_free(&ep->timers);
    free(ep);
}

static xl_connection *new_connection(xl_endpoint *ep, bool is_server, uint64_t now) {
    if (ep->count == ep->cap) {
        size_t cap = ep->cap ? 2 * ep->cap : 8;
        xl_connection **grown = realloc(ep->connection, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        ep->connection = grown;
        ep->cap = cap;
    }
    if (xl_timer_heap_reserve(&ep->timers) != 0)
        return NULL;
    xl_connection_hooks hooks = {ep,      on_event,   on_make_cid,    on_cid_added,  on_cid_removed,
                                 on_wake, on_touched, on_reset_token, on_make_token, &ep->send_pool};
    const uint64_t number = ++ep->connections_begun;
    const xl_connection_random random = {
        .cids = xl_drbg_stream_of(ep->generator[XL_PURPOSE_CIDS], number),
        .challenges = xl_drbg_stream_of(ep->generator[XL_PURPOSE_CHALLENGES], number),
        .skips = xl_drbg_stream_of(ep->generator[XL_PURPOSE_SKIPS], number),
        .grease = xl_drbg_stream_of(ep->generator[XL_PURPOSE_HEADERS], number),
    };
    xl_connection *c = xl_conn_new(&ep->config, &hooks, is_server, &random, now);
    if (!c)
        return NULL;
    ep->half_open += is_server;
    c->slot.index = ep->count;
    ep->connection[ep->count++] = c;
    xl_timer_heap_add(&ep->timers, c);
    return c;
}

void xl_connection_free(xl_connection *c) {
    if (!c)
        return;
    xl_endpoint *ep = c->hooks.user;
    ep->half_open -= c->is_server && !c->handshake.is_reported;
    if (c->slot.client)
        xl_clients_remove(&ep->clients, c->slot.client, c->slot.is_proven);
    xl_cid_map_remove_all_of(&ep->map, c);
    forget_events(ep, c);
    unready(ep, c);
    xl_timer_heap_remove(&ep->timers, c);
    ep->connection[c->slot.index] = ep->connection[--ep->count];
    ep->connection[c->slot.index]->slot.index = c->slot.index;
    xl_conn_destroy(c);
}

xl_connection *xl_endpoint_connect(xl_endpoint *ep, const char *server_name, const xl_addr *local,
                                   const xl_addr *remote, xl_technology technology, uint64_t now) {
    xl_connection *c = ep->config.is_server ? NULL : new_connection(ep, false, now);
    if (c && xl_conn_start_client(c, server_name, local, remote, technology, now) != 0) {
        xl_connection_free(c);
        return NULL;
    }
    return c;
}

/* ---- Datagrams in ---- */

static xl_stateless *next_stateless(xl_endpoint *ep, const xl_datagram *in) {
    if (ep->stateless_count == XL_STATELESS_MAX)
        return NULL;
    xl_stateless *s = &ep->stateless[ep->stateless_count];
    s->to = (xl_datagram){.local = in->local, .remote = in->remote};
    return s;
}

static void send_version_negotiation(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h) {
    xl_stateless *s = next_stateless(ep, in);
    if (!s || in->len < XL_MIN_DATAGRAM)
        return;
    s->to.len = xl_packet_put_version_negotiation(s->data, sizeof(s->data), &h->scid, &h->dcid,
                                                  ep->config.limits.versions, (uint8_t)xl_drbg_next(&ep->headers));
    ep->stateless_count += s->to.len > 0;
}

static void send_stateless_reset(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h) {
    const xl_deployment *d = ep->config.deployment;
    xl_stateless *s = next_stateless(ep, in);
    if (!s || in->len < RESET_MIN || (d && !xl_deployment_is_own(d, h->dcid.id, h->dcid.len)))
        return;
    size_t len = in->len - 1 < 64 ? in->len - 1 : 42 + xl_drbg_next(&ep->resets) % 22;
    xl_drbg_bytes(&ep->resets, s->data, len);
    s->data[0] = (uint8_t)((s->data[0] & 0x3f) | 0x40);
    if (on_reset_token(ep, &h->dcid, s->data + len - 16) != 0)
        return;
    s->to.len = len;
    ep->stateless_count++;
    ep->stats.stateless_resets++;
}

static bool lists_version(const xl_packet_header *h, uint32_t version) {
    xl_reader r = xl_reader_of(h->token, h->token_len);
    bool is_listed = false;
    while (xl_reader_left(&r) >= 4)
        is_listed |= xl_read_u32(&r) == version;
    return is_listed;
}

/* RFC 9000 section 6.2. A list with the version that we chose is discarded: no server of that version sends it, and one
 * flipped bit of our first packet brings it about. */
static void take_version_negotiation(xl_endpoint *ep, const xl_packet_header *h, uint64_t now) {
    xl_connection *c = xl_cid_map_get(&ep->map, &h->dcid);
    if (!c || c->is_server || c->state != XL_CONN_HANDSHAKE || c->handshake.initial_scid_peer.len > 0 ||
        c->handshake.has_retry || !xl_cid_equal(&h->scid, &c->handshake.odcid) ||
        lists_version(h, c->handshake.version))
        return;
    xl_conn_enter(c, now);
    xl_conn_abort(c, XL_CLOSE_VERSION,
                  c->handshake.version == XL_VERSION_2 ? "the server does not speak QUIC version 2"
                                                       : "the server does not speak QUIC version 1");
}

static void send_retry(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t now) {
    xl_stateless *s = next_stateless(ep, in);
    if (!s)
        return;
    xl_cid scid;
    on_make_cid(ep, &ep->stray_cids, &scid);
    s->to.len = xl_retry_put(ep->keys.retry, h, &in->remote, &scid, (uint8_t)xl_drbg_next(&ep->headers), now, s->data,
                             sizeof(s->data));
    ep->stateless_count += s->to.len > 0;
    ep->stats.retries += s->to.len > 0;
}

/* Refusals cost keys for each: so many a second, and the rest hears nothing. */
static bool may_refuse(xl_endpoint *ep, uint64_t now) {
    if (ep->refusals == 0 || now - ep->refusals_since >= REFUSALS_US) {
        ep->refusals_since = now;
        ep->refusals = 0;
    }
    return ep->refusals++ < REFUSALS_MOST;
}

static void refuse(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t code, uint64_t now) {
    xl_stateless *s = may_refuse(ep, now) ? next_stateless(ep, in) : NULL;
    if (!s)
        return;
    s->to.len = xl_retry_put_refusal(h, code, s->data, sizeof(s->data));
    ep->stateless_count += s->to.len > 0;
}

static bool is_full(size_t connections, const xl_limits *limits) {
    return connections >= limits->max_per_client;
}

static bool has_to_prove(const xl_endpoint *ep, const xl_client *client) {
    const xl_limits *limits = &ep->config.limits;
    return limits->retry_always || ep->half_open >= limits->retry_above ||
           (client && is_full(client->proven + client->unproven, limits));
}

/* A token of NEW_TOKEN that did not come before, as far as is remembered (RFC 9000 section 8.1.4). */
static bool is_fresh_token(xl_endpoint *ep, const xl_packet_header *h, const xl_addr *client, uint64_t now) {
    if (!xl_token_is_valid(ep->keys.retry, h->token, h->token_len, client, now))
        return false;
    if (!ep->used_tokens && !(ep->used_tokens = calloc(1, sizeof(*ep->used_tokens))))
        return false;
    bool was_used = xl_outstanding_take(ep->used_tokens, h->token, h->token_len, "");
    xl_outstanding_add(ep->used_tokens, h->token, h->token_len, "");
    return !was_used;
}

/* True: a connection is to be made for this Initial, for which there is none; otherwise it has been answered. */
static bool admit(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t now, xl_cid *odcid,
                  bool *is_retried, bool *is_proven) {
    if (in->len < XL_MIN_DATAGRAM)
        return false;
    *odcid = h->dcid;
    const xl_limits *limits = &ep->config.limits;
    const xl_client *client = limits->max_per_client ? xl_clients_find(&ep->clients, &in->remote) : NULL;
    xl_token_verdict verdict = xl_retry_check(ep->keys.retry, h, &in->remote, now, odcid);
    *is_retried = verdict == XL_TOKEN_VALID;
    *is_proven = *is_retried || is_fresh_token(ep, h, &in->remote, now);
    if (!*is_retried && h->dcid.len < MIN_INITIAL_DCID)
        return false;
    if (verdict == XL_TOKEN_INVALID) {
        refuse(ep, in, h, XL_QERR_INVALID_TOKEN, now);
        return false;
    }
    if (!*is_proven && has_to_prove(ep, client)) {
        send_retry(ep, in, h, now);
        return false;
    }
    bool has_room = ep->count < limits->max_connections && !(client && is_full(client->proven, limits));
    if (!has_room) {
        refuse(ep, in, h, XL_QERR_CONNECTION_REFUSED, now);
        ep->stats.refused++;
    }
    return has_room;
}

/* Nobody is turned away for want of memory to count him. */
static void count_client(xl_endpoint *ep, xl_connection *c, const xl_addr *remote, bool is_proven) {
    c->slot.is_proven = is_proven;
    if (ep->config.limits.max_per_client)
        c->slot.client = xl_clients_add(&ep->clients, remote, is_proven);
}

/* ---- 0-RTT packets that come before their ClientHello ---- */

static void hold(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, const uint8_t *data, uint64_t now) {
    if (!xl_credentials_have_early(ep->config.credentials) || in->len > XL_HELD_BYTES)
        return;
    if (!ep->held && !(ep->held = calloc(XL_HELD_MAX, sizeof(*ep->held))))
        return;
    xl_held *oldest = &ep->held[ep->held_next++ % XL_HELD_MAX];
    *oldest = (xl_held){.head = *in, .dcid = h->dcid, .until = now + XL_HELD_US};
    memcpy(oldest->data, data, in->len);
}

/* h: the first packet of the connection, whose buffer may have been decrypted in place since. */
static void take_held(xl_endpoint *ep, xl_connection *c, const xl_packet_header *h, const xl_datagram *in,
                      uint64_t now) {
    for (size_t i = 0; ep->held && i < XL_HELD_MAX; i++) {
        xl_held *d = &ep->held[(ep->held_next + i) % XL_HELD_MAX];
        bool is_its = d->head.len > 0 && d->until >= now && xl_cid_equal(&d->dcid, &h->dcid) &&
                      xl_addr_equal(&d->head.remote, &in->remote);
        if (!is_its)
            continue;
        xl_conn_receive(c, &d->head, d->data, now);
        d->head.len = 0;
    }
}

static void accept_connection(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint8_t *data,
                              uint64_t now) {
    xl_cid odcid;
    bool is_retried, is_proven;
    if (!admit(ep, in, h, now, &odcid, &is_retried, &is_proven))
        return;
    xl_connection *c = new_connection(ep, true, now);
    if (!c)
        return;
    count_client(ep, c, &in->remote, is_proven);
    if (xl_conn_start_server(c, h, is_retried ? &odcid : NULL, is_proven, &in->local, &in->remote, now) != 0 ||
        xl_cid_map_put(&ep->map, &h->dcid, c) != 0) {
        xl_connection_free(c);
        return;
    }
    xl_conn_receive(c, in, data, now);
    take_held(ep, c, h, in, now);
    if (c->space[XL_LEVEL_INITIAL].largest_received == UINT64_MAX && !c->level_discarded[XL_LEVEL_INITIAL] &&
        c->state != XL_CONN_CLOSING)
        xl_connection_free(c); /* nothing in it was genuine */
}

/* A packet of no connection here may be one of another worker's live connections: it is passed on, and never answered.
 */
static bool belongs_elsewhere(xl_endpoint *ep, const xl_datagram *in, const xl_cid *dcid, const uint8_t *data) {
    const xl_deployment *d = ep->config.deployment;
    if (!d || in->forwarded)
        return false;
    unsigned worker = xl_deployment_worker_of(d, dcid->id, dcid->len);
    if (worker == d->worker)
        return false;
    ep->stats.misrouted++;
    if (d->forward)
        d->forward(d->forward_user, worker, in, data);
    return true;
}

static size_t short_cid_bytes(const xl_endpoint *ep, const uint8_t *data) {
    const xl_deployment *d = ep->config.deployment;
    return d ? xl_deployment_cid_bytes(d, data[1]) : XL_LOCAL_CID_BYTES;
}

/* Two clients may have chosen the same first destination CID: players with one seed do. Once the first has answered
 * with a Handshake packet it sends no Initials any more, so one from elsewhere is another client's. */
static bool is_of_another_client(const xl_connection *c, const xl_packet_header *h, const xl_datagram *in) {
    return c->is_server && h->type == XL_PACKET_INITIAL && c->level_discarded[XL_LEVEL_INITIAL] &&
           xl_cid_equal(&h->dcid, &c->handshake.odcid) && !xl_addr_equal(&c->path[0].remote, &in->remote);
}

void xl_endpoint_receive(xl_endpoint *ep, const xl_datagram *in, uint8_t *data, uint64_t now) {
    xl_packet_header h;
    ep->now = now;
    ep->stats.forwarded += in->forwarded;
    if (in->len < 21 || xl_packet_parse(data, in->len, short_cid_bytes(ep, data), &h) != 0)
        return;
    if (h.type == XL_PACKET_VERSION_NEGOTIATION) {
        take_version_negotiation(ep, &h, now);
        return;
    }
    if (!h.has_quic_bit && h.type != XL_PACKET_OTHER_VERSION && !ep->config.limits.grease)
        return;
    if (h.type != XL_PACKET_1RTT && !xl_versions_has(ep->config.limits.versions, h.version)) {
        if (ep->config.is_server)
            send_version_negotiation(ep, in, &h);
        return;
    }
    xl_connection *c = xl_cid_map_get(&ep->map, &h.dcid);
    if (c && is_of_another_client(c, &h, in))
        c = NULL;
    if (c) {
        xl_conn_receive(c, in, data, now);
    } else if (belongs_elsewhere(ep, in, &h.dcid, data)) {
        return;
    } else if (ep->config.is_server && h.type == XL_PACKET_INITIAL) {
        accept_connection(ep, in, &h, data, now);
    } else if (ep->config.is_server && h.type == XL_PACKET_0RTT) {
        hold(ep, in, &h, data, now);
    } else if (h.type == XL_PACKET_1RTT) {
        /* A stateless reset carries no CID that we know: a client may hear one for any of its connections (10.3.1). */
        for (size_t i = 0; i < ep->count && !ep->config.is_server; i++)
            if (xl_conn_path_by_address(ep->connection[i], &in->local, &in->remote))
                xl_conn_receive(ep->connection[i], in, data, now);
        if (ep->config.is_server)
            send_stateless_reset(ep, in, &h);
    }
}

void xl_endpoint_get_stats(const xl_endpoint *ep, xl_endpoint_stats *out) {
    *out = ep->stats;
    out->connections = ep->count;
    out->send_bytes = ep->send_pool.held;
}

/* ---- Datagrams out, time ---- */

size_t xl_endpoint_transmit(xl_endpoint *ep, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now) {
    ep->now = now;
    if (ep->stateless_count > 0) {
        xl_stateless *s = &ep->stateless[--ep->stateless_count];
        if (s->to.len > cap)
            return 0;
        memcpy(buf, s->data, s->to.len);
        *out = s->to;
        return out->len;
    }
    xl_connection *c;
    while ((c = pop_ready(ep))) {
        size_t n = xl_conn_transmit(c, buf, cap, out, now);
        if (n == 0)
            continue;
        on_wake(ep, c); /* perhaps there is more: to the end of the queue, after the others */
        return n;
    }
    return 0;
}

/* A touch that was missed would be a timer that fires late or never. */
static void check_timers(const xl_endpoint *ep) {
#ifdef XL_CHECK_TIMERS
    uint64_t earliest = XL_NEVER;
    for (size_t i = 0; i < ep->count; i++) {
        uint64_t at = xl_conn_next_timeout(ep->connection[i]);
        assert(at == xl_timer_heap_get(&ep->timers, ep->connection[i]));
        earliest = at < earliest ? at : earliest;
    }
    assert(earliest == xl_timer_heap_earliest(&ep->timers));
#else
    (void)ep;
#endif
}

static void update_timers(xl_endpoint *ep) {
    xl_connection *c;
    while ((c = xl_timer_heap_take_touched(&ep->timers)))
        xl_timer_heap_set(&ep->timers, c, xl_conn_next_timeout(c));
    check_timers(ep);
}

void xl_endpoint_too_large(xl_endpoint *ep, const xl_datagram *d, uint64_t now) {
    for (size_t i = 0; i < ep->count; i++) {
        xl_connection *c = ep->connection[i];
        xl_path *p = xl_conn_path_by_address(c, &d->local, &d->remote);
        if (!p || !xl_conn_is_live(c))
            continue;
        xl_conn_enter(c, now);
        xl_mtu_too_large(&p->mtu_search, d->len, now);
        xl_conn_apply_mtu(c, p);
        xl_conn_wake(c);
    }
}

uint64_t xl_endpoint_next_timeout(xl_endpoint *ep) {
    update_timers(ep);
    return xl_timer_heap_earliest(&ep->timers);
}

static int by_index(const void *a, const void *b) {
    size_t x = (*(xl_connection *const *)a)->slot.index, y = (*(xl_connection *const *)b)->slot.index;
    return (x > y) - (x < y);
}

/* In the order of the connections' indices, whatever that of the heap: what follows, and in which order it is sent,
 * shall not hang on how the heap came to be what it is. */
void xl_endpoint_handle_timeout(xl_endpoint *ep, uint64_t now) {
    update_timers(ep);
    size_t n = xl_timer_heap_due(&ep->timers, now);
    if (n > 1)
        qsort(ep->timers.due, n, sizeof(xl_connection *), by_index);
    for (size_t i = 0; i < n; i++)
        xl_conn_handle_timeout(ep->timers.due[i], now);
}

/* Connections that the pool refused something learn of what others gave back, once it is worth it. */
static void offer_pool(xl_endpoint *ep) {
    xl_budget_pool *pool = &ep->send_pool;
    if (!pool->refused || pool->held + pool->common / 16 > pool->common)
        return;
    pool->refused = false;
    for (size_t i = 0; i < ep->count; i++)
        xl_conn_offer_room(ep->connection[i]);
}

bool xl_endpoint_poll_event(xl_endpoint *ep, xl_event *out) {
    offer_pool(ep);
    while (ep->event_head < ep->event_next) {
        const xl_queued_event *e = event_number(ep, ep->event_head++);
        if (!e->event.connection)
            continue;
        *out = e->event;
        return true;
    }
    return false;
}
