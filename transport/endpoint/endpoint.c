#include "endpoint/endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "connection/path_table.h"
#include "connection/receive.h"
#include "connection/room.h"
#include "connection/state.h"
#include "connection/transmit.h"
#include "endpoint/admission.h"
#include "endpoint/answers.h"
#include "endpoint/configuration.h"
#include "endpoint/events.h"
#include "endpoint/foresight.h"
#include "endpoint/held.h"
#include "endpoint/hooks.h"
#include "endpoint/ready.h"

const char *xl_version(void) {
    return XL_VERSION;
}

/* ---- Life ---- */

static bool is_zero(const uint8_t *bytes, size_t len) {
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++)
        any |= bytes[i];
    return any == 0;
}

static int open_generators(xl_endpoint *ep, const uint8_t *random_key) {
    static const char *const labels[XL_PURPOSES] = {
        [XL_PURPOSE_CIDS] = "connection IDs",
        [XL_PURPOSE_CHALLENGES] = "path challenges",
        [XL_PURPOSE_SKIPS] = "packet number skips",
        [XL_PURPOSE_RESETS] = "padding of stateless resets",
        [XL_PURPOSE_HEADERS] = "unused header bits",
        [XL_PURPOSE_TOKENS] = "nonces of tokens",
        [XL_PURPOSE_FIRST_NUMBERS] = "first packet numbers",
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

/* Sets up the random generators and keys from the configuration's random_key, and the keys that workers and successors
 * share from their secret. */
static int open_random(xl_endpoint *ep, const xl_config *config) {
    if (is_zero(config->random_key, sizeof config->random_key))
        return XL_ERR_ARGUMENT;
    uint64_t hash_key[2], client_key[2];
    int error = open_generators(ep, config->random_key);
    if (!error && config->deployment)
        ep->keys = config->deployment->keys;
    else if (!error)
        error = xl_static_keys_from(config->random_key, &ep->keys);
    if (!error)
        error = xl_random_subkey(config->random_key, "map of connection IDs", (uint8_t *)hash_key, sizeof hash_key);
    if (!error)
        error = xl_random_subkey(config->random_key, "map of clients", (uint8_t *)client_key, sizeof client_key);
    if (!error && config->is_server && config->limits.max_per_client)
        error = xl_clients_init(&ep->clients, ep->config.limits.max_connections, client_key);
    if (!error)
        error = xl_cid_map_init(&ep->map, hash_key[0], hash_key[1]);
    if (!error)
        error = xl_cid_map_init(&ep->reset_tokens, hash_key[0], hash_key[1]);
    ep->reset_tokens.holds_tokens = true;
    return error;
}

xl_endpoint *xl_endpoint_new_foreseeing(const xl_config *config, const struct xl_foresight *foresight, uint64_t now,
                                        int *error) {
    (void)now;
    xl_endpoint *ep = calloc(1, sizeof *ep);
    if (ep) {
        ep->event_head = ep->event_next = 1;
        ep->foresight = foresight;
    }
    *error = ep ? xl_endpoint_copy_config(ep, config) : XL_ERR_MEMORY;
    if (*error == 0) {
        xl_budget_pool_init(&ep->send_pool, ep->config.limits.endpoint_send_bytes, ep->config.limits.max_connections);
        memset(ep->config.random_key, 0, sizeof ep->config.random_key); /* the keys derived from it are enough */
        *error = open_random(ep, config);
    }
    if (*error == 0)
        return ep;
    xl_endpoint_free(ep);
    return NULL;
}

xl_endpoint *xl_endpoint_new(const xl_config *config, uint64_t now, int *error) {
    return xl_endpoint_new_foreseeing(config, NULL, now, error);
}

int xl_endpoint_reconfigure(xl_endpoint *ep, const xl_scheme *scheme, uint64_t now) {
    const int error = xl_scheme_copy(scheme, ep->foresight != NULL, &ep->config.scheme);
    for (size_t i = 0; i < ep->count && !error; i++)
        xl_conn_reconfigure(ep->connection[i], now);
    return error;
}

void xl_endpoint_free(xl_endpoint *ep) {
    if (!ep)
        return;
    for (size_t i = 0; i < ep->count; i++)
        xl_conn_destroy(ep->connection[i]);
    free(ep->connection);
    xl_cid_map_free(&ep->map);
    xl_cid_map_free(&ep->reset_tokens);
    xl_clients_free(&ep->clients);
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
        xl_connection **grown = realloc(ep->connection, cap * sizeof *grown);
        if (!grown)
            return NULL;
        ep->connection = grown;
        ep->cap = cap;
    }
    if (xl_timer_heap_reserve(&ep->timers) != 0)
        return NULL;
    const xl_connection_hooks hooks = xl_endpoint_hooks(ep);
    const uint64_t number = ++ep->connections_begun;
    const xl_connection_random random = {
        .cids = xl_drbg_stream_of(ep->generator[XL_PURPOSE_CIDS], number),
        .challenges = xl_drbg_stream_of(ep->generator[XL_PURPOSE_CHALLENGES], number),
        .skips = xl_drbg_stream_of(ep->generator[XL_PURPOSE_SKIPS], number),
        .first_numbers = xl_drbg_stream_of(ep->generator[XL_PURPOSE_FIRST_NUMBERS], number),
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
    xl_endpoint *ep = c->hooks.endpoint;
    ep->half_open -= c->is_server && !c->handshake.is_complete;
    if (c->slot.client)
        xl_clients_remove(&ep->clients, c->slot.client, c->slot.is_proven);
    xl_cid_map_remove_all_of(&ep->map, c);
    xl_cid_map_remove_all_of(&ep->reset_tokens, c);
    xl_events_forget(ep, c);
    xl_ready_remove(ep, c);
    xl_timer_heap_remove(&ep->timers, c);
    ep->connection[c->slot.index] = ep->connection[--ep->count];
    ep->connection[c->slot.index]->slot.index = c->slot.index;
    xl_conn_destroy(c);
}

xl_connection *xl_endpoint_connect(xl_endpoint *ep, const char *server_name, const xl_addr *local,
                                   const xl_addr *remote, xl_technology technology, uint64_t now) {
    xl_connection *c =
        ep->config.is_server || !xl_conn_addresses_match(local, remote) ? NULL : new_connection(ep, false, now);
    if (c && xl_conn_start_client(c, server_name, local, remote, technology, now) != 0) {
        xl_connection_free(c);
        return NULL;
    }
    return c;
}

/* ---- Datagrams in ---- */

static bool lists_version(const xl_packet_header *h, uint32_t version) {
    xl_reader r = xl_reader_of(h->token, h->token_len);
    bool is_listed = false;
    while (xl_reader_left(&r) >= 4)
        is_listed |= xl_read_u32(&r) == version;
    return is_listed;
}

/* RFC 9000 section 6.2. A list with the version that we chose is discarded: no server of that version sends it, but one
 * flipped bit of our first packet causes it. */
static void take_version_negotiation(xl_endpoint *ep, const xl_packet_header *h, uint64_t now) {
    xl_connection *c = xl_cid_map_get(&ep->map, &h->dcid);
    if (!c || c->is_server || c->state != XL_CONN_HANDSHAKE || c->handshake.has_scid_peer || c->handshake.has_retry ||
        !xl_cid_equal(&h->scid, &c->handshake.odcid) || lists_version(h, c->handshake.version))
        return;
    xl_conn_enter(c, now);
    xl_conn_abort(c, XL_CLOSE_VERSION,
                  c->handshake.version == XL_VERSION_2 ? "the server does not speak QUIC version 2"
                                                       : "the server does not speak QUIC version 1");
}

static void accept_connection(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint8_t *data,
                              uint64_t now) {
    xl_cid odcid;
    bool is_retried, is_proven;
    if (!xl_endpoint_admit(ep, in, h, now, &odcid, &is_retried, &is_proven))
        return;
    xl_connection *c = new_connection(ep, true, now);
    if (!c)
        return;
    xl_endpoint_count_client(ep, c, &in->remote, is_proven);
    if (xl_conn_start_server(c, h, is_retried ? &odcid : NULL, is_proven, &in->local, &in->remote, now) != 0 ||
        xl_cid_map_put(&ep->map, &h->dcid, c) != 0) {
        xl_connection_free(c);
        return;
    }
    xl_conn_receive(c, in, h, data, now);
    xl_held_take(ep, c, h, in, now);
    if (c->space[XL_LEVEL_INITIAL].largest_received == UINT64_MAX && !c->level_discarded[XL_LEVEL_INITIAL] &&
        c->state != XL_CONN_CLOSING)
        xl_connection_free(c); /* nothing in the datagram was authentic */
}

/* A packet without a connection here may belong to a live connection of another worker. It is passed on, never
 * answered. */
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

/* Two clients may choose the same first destination CID, as players with one seed do. Once the first client has
 * answered with a Handshake packet it sends no Initials, so an Initial from another address is another client's. */
static bool is_of_another_client(const xl_connection *c, const xl_packet_header *h, const xl_datagram *in) {
    return c->is_server && h->type == XL_PACKET_INITIAL && c->level_discarded[XL_LEVEL_INITIAL] &&
           xl_cid_equal(&h->dcid, &c->handshake.odcid) && !xl_addr_equal(&c->path[0]->remote, &in->remote);
}

/* A datagram without a known CID may be a stateless reset, whatever it looks like (RFC 9000 section 10.3). A server
 * looks up its token. A client passes it to each of its connections with these addresses (10.3.1); they log datagrams
 * with a short header that are no resets. Returns whether a server has found the token. */
static bool take_reset(xl_endpoint *ep, const xl_datagram *in, uint8_t *data, uint64_t now) {
    const bool is_long = data[0] & 0x80;
    const xl_cid token = xl_endpoint_token_key(data + in->len - 16);
    xl_connection *c = ep->config.is_server ? xl_cid_map_get(&ep->reset_tokens, &token) : NULL;
    if (c)
        xl_conn_receive(c, in, NULL, data, now);
    for (size_t i = 0; i < ep->count && !ep->config.is_server; i++)
        if (xl_conn_path_by_address(ep->connection[i], &in->local, &in->remote) &&
            (!is_long || xl_conn_is_stateless_reset(ep->connection[i], data, in->len)))
            xl_conn_receive(ep->connection[i], in, NULL, data, now);
    return c;
}

void xl_endpoint_receive(xl_endpoint *ep, const xl_datagram *in, uint8_t *data, uint64_t now) {
    xl_packet_header h;
    ep->now = now;
    ep->stats.forwarded += in->forwarded;
    if (in->len < XL_RESET_MIN_BYTES)
        return;
    const bool is_packet = xl_packet_parse(data, in->len, short_cid_bytes(ep, data), &h) == 0;
    if (is_packet && h.type == XL_PACKET_VERSION_NEGOTIATION) {
        take_version_negotiation(ep, &h, now);
        return;
    }
    if (!is_packet || (!h.has_quic_bit && h.type != XL_PACKET_OTHER_VERSION && !ep->config.limits.grease)) {
        take_reset(ep, in, data, now);
        return;
    }
    if (h.type != XL_PACKET_1RTT && !xl_versions_has(ep->config.limits.versions, h.version)) {
        if (!take_reset(ep, in, data, now) && ep->config.is_server)
            xl_answer_version_negotiation(ep, in, &h);
        return;
    }
    xl_connection *c = xl_cid_map_get(&ep->map, &h.dcid);
    if (c && is_of_another_client(c, &h, in))
        c = NULL;
    if (c)
        xl_conn_receive(c, in, &h, data, now);
    else if (take_reset(ep, in, data, now))
        return;
    else if (belongs_elsewhere(ep, in, &h.dcid, data))
        return;
    else if (ep->config.is_server && h.type == XL_PACKET_INITIAL)
        accept_connection(ep, in, &h, data, now);
    else if (ep->config.is_server && h.type == XL_PACKET_0RTT)
        xl_held_add(ep, in, &h, data, now);
    else if (ep->config.is_server && h.type == XL_PACKET_1RTT)
        xl_answer_reset(ep, in, &h);
}

void xl_endpoint_get_stats(const xl_endpoint *ep, xl_endpoint_stats *out) {
    *out = ep->stats;
    out->connections = ep->count;
    out->send_bytes = ep->send_pool.held;
}

/* ---- Datagrams out, time ---- */

size_t xl_endpoint_transmit(xl_endpoint *ep, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now) {
    ep->now = now;
    if (ep->stateless_count > 0)
        return xl_answer_take(ep, buf, cap, out);
    xl_connection *c;
    while ((c = xl_ready_take(ep))) {
        size_t n = xl_conn_transmit(c, buf, cap, out, now);
        if (n == 0)
            continue;
        if (!c->has_sent_all)
            xl_ready_add(ep, c); /* there may be more: behind the other connections */
        return n;
    }
    return 0;
}

/* Without a touch that the code forgot, a timer fires late or never. */
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

static void update_touched(xl_endpoint *ep) {
    xl_connection *c;
    while ((c = xl_timer_heap_take_touched(&ep->timers)))
        xl_timer_heap_set(&ep->timers, c, xl_conn_next_timeout(c));
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
    if (ep->timers.touched_count > 0)
        update_touched(ep);
    check_timers(ep);
    return xl_timer_heap_earliest(&ep->timers);
}

static int by_index(const void *a, const void *b) {
    size_t x = (*(xl_connection *const *)a)->slot.index, y = (*(xl_connection *const *)b)->slot.index;
    return (x > y) - (x < y);
}

/* Handles timeouts in the order of connection indices, not of the heap, so that the order of packets does not depend on
 * the history of the heap. */
void xl_endpoint_handle_timeout(xl_endpoint *ep, uint64_t now) {
    if (xl_endpoint_next_timeout(ep) > now)
        return;
    size_t n = xl_timer_heap_due(&ep->timers, now);
    if (n > 1)
        qsort(ep->timers.due, n, sizeof(xl_connection *), by_index);
    for (size_t i = 0; i < n; i++)
        xl_conn_handle_timeout(ep->timers.due[i], now);
}

/* Once a 16th of the shared memory is free, wakes the connections that the pool refused. */
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
    return xl_events_take(ep, out);
}
