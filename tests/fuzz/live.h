/* A connected client and server: the tests' pair on its virtual clock, with small applications at both ends, and a loop
 * that checks at every step the properties that must hold for any behaviour of a peer:
 *
 *     an address that is not validated is sent at most 3 times the bytes received from it (RFC 9000 section 8);
 *     at one time an endpoint sends a bounded number of datagrams and returns a bounded number of events, and then its
 *     next timeout is later than now;
 *     paths, connection IDs, streams, acknowledgement ranges, packet records and memory are bounded;
 *     every record of a qlog is JSON. */
#pragma once

#include "testing/pair.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/qlog.h"

#define LIVE_MOMENT_DATAGRAMS 4096
#define LIVE_MOMENT_EVENTS    8192
#define LIVE_MOMENT_STEPS     64   /* rounds of due timers at one time, each caused by the one before */
#define LIVE_DATAGRAMS        4000 /* limit per input, which ends it */
#define LIVE_MEMORY_BYTES     (64u << 20)
#define LIVE_VICTIMS          4
#define LIVE_VICTIM_HOST      99
#define LIVE_ANSWER_MOST      200000
#define LIVE_SEEN             16
#define LIVE_DATAGRAM_BYTES   20000

typedef struct {
    bool to_server;
    size_t len;
    xl_addr local, remote; /* as seen by the receiver */
    uint8_t data[PAIR_MTU + 64];
} live_sight;

typedef struct {
    pair p;
    fuzz_qlog qlog[2]; /* of client, server */
    fuzz_input *in;
    uint64_t datagrams;
    uint64_t forged_pn;
    uint64_t from_victim[LIVE_VICTIMS], to_victim[LIVE_VICTIMS]; /* bytes, as counted at the server */
    uint64_t from_link[PAIR_PATHS]; /* the same for each link's address, and whether it may be validated */
    bool may_be_valid[PAIR_PATHS];
    live_sight seen[LIVE_SEEN];
    size_t seen_count;
    size_t memory_before;
    uint64_t last_at[2]; /* timeouts of both ends at the last step */
    struct {
        bool used;
        uint64_t id, left;
    } answer[PAIR_REQUESTS];
} live;

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static inline size_t live_memory(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

static inline xl_addr live_victim(unsigned i) {
    return pair_addr(LIVE_VICTIM_HOST, (uint16_t)(7000 + i % LIVE_VICTIMS));
}

static inline bool live_is_victim(const xl_addr *a) {
    return a->family == 4 && a->ip[3] == LIVE_VICTIM_HOST;
}

/* ---- what must hold ---- */

static inline void live_check_connection(const xl_connection *c) {
    if (!c || c->state >= XL_CONN_CLOSING)
        return;
    const xl_limits *limits = &c->config->limits;
    uint64_t peers = limits->max_streams_bidi + limits->max_streams_uni;
    FUZZ_CHECK(c->path_count <= XL_MAX_PATHS);
    FUZZ_CHECK(c->local_cids.count <= XL_CIDS_MAX && c->remote_cids.count <= XL_CIDS_MAX);
    FUZZ_CHECK(c->remote_cids.retire_count <= 4 * XL_CIDS_MAX);
    for (size_t i = 0; c->path_ids && i < XL_PATH_IDS_MAX; i++) {
        const xl_path_id *id = &c->path_ids->at[i];
        FUZZ_CHECK(xl_cids_active(id->local) <= c->peer_params.active_connection_id_limit);
        FUZZ_CHECK(id->local->count <= XL_CIDS_MAX && id->remote->count <= XL_MAX_PATHS);
        FUZZ_CHECK(id->remote->retire_count <= 4 * XL_CIDS_MAX);
        FUZZ_CHECK(id->id == UINT64_MAX || id->id <= c->path_ids->local_max);
        FUZZ_CHECK(!id->is_abandoned || id->remote->count == 0);
    }
    FUZZ_CHECK(c->streams.count <= peers + c->streams.opened[0].used + c->streams.opened[1].used);
    FUZZ_CHECK(c->streams.flow_in.consumed <= c->streams.flow_in.received &&
               c->streams.flow_in.received <= c->streams.flow_in.limit);
    FUZZ_CHECK(c->datagrams.in.bytes <= LIVE_DATAGRAM_BYTES && c->datagrams.out.bytes <= LIVE_DATAGRAM_BYTES);
    for (size_t i = 0; i < c->path_count; i++) {
        const xl_path *p = c->path[i];
        FUZZ_CHECK(p->responses.count <= XL_PATH_RESPONSES_MAX);
        FUZZ_CHECK(!p->space || p->space->ledger.cap <= 16384);
        FUZZ_CHECK(p->flight.bytes < UINT64_C(1) << 40 && p->flight.eliciting < UINT64_C(1) << 32);
        FUZZ_CHECK(p->validation.is_done || p->validation.received_bytes > UINT64_C(1) << 40 || !c->is_server ||
                   p->validation.sent_bytes <= 3 * p->validation.received_bytes);
    }
}

static inline void live_check(live *l) {
    pair *p = &l->p;
    for (unsigned i = 0; i < LIVE_VICTIMS; i++)
        FUZZ_CHECK(l->to_victim[i] <= 3 * l->from_victim[i]);
    for (size_t i = 0; i < p->link_count; i++)
        FUZZ_CHECK(l->may_be_valid[i] || p->link[i].bytes[1] <= 3 * l->from_link[i]);
    live_check_connection(p->client_closed ? NULL : p->cc);
    live_check_connection(p->server_closed ? NULL : p->sc);
    FUZZ_CHECK(live_memory() <= l->memory_before + LIVE_MEMORY_BYTES);
}

/* ---- the applications ---- */

static inline void live_answer(live *l, size_t i) {
    uint8_t buf[4096];
    while (l->answer[i].used && l->answer[i].left > 0) {
        size_t n = l->answer[i].left < sizeof buf ? (size_t)l->answer[i].left : sizeof buf;
        memset(buf, (int)l->answer[i].left, n);
        ssize_t took = xl_stream_send(l->p.sc, l->answer[i].id, buf, n, n == l->answer[i].left, NULL);
        if (took <= 0) {
            l->answer[i].used = took == 0;
            return;
        }
        l->answer[i].left -= (uint64_t)took;
    }
    l->answer[i].used = false;
}

static inline void live_read(live *l, xl_connection *c, uint64_t id) {
    uint8_t buf[2048];
    uint64_t ask = 0;
    bool fin = false;
    ssize_t n;
    while ((n = xl_stream_read(c, id, buf, sizeof buf, &fin)) > 0) {
        FUZZ_CHECK((size_t)n <= sizeof buf);
        fuzz_note(buf, (size_t)n);
        for (ssize_t i = 0; i < n; i++)
            ask = ask << 8 | buf[i];
    }
    if (!fin || c != l->p.sc || id % 4 != 0)
        return;
    for (size_t i = 0; i < PAIR_REQUESTS; i++)
        if (!l->answer[i].used) {
            l->answer[i].used = true;
            l->answer[i].id = id;
            l->answer[i].left = 1 + ask % LIVE_ANSWER_MOST;
            live_answer(l, i);
            return;
        }
}

static inline void live_read_datagrams(xl_connection *c) {
    uint8_t buf[500];
    size_t len;
    while (xl_connection_read_datagram(c, buf, sizeof buf, &len)) {
        FUZZ_CHECK(len < 1000);
        fuzz_note(buf, len < sizeof buf ? len : sizeof buf);
    }
}

static inline void live_take_event(live *l, bool is_server, const xl_event *e) {
    pair *p = &l->p;
    fuzz_note_number(e->type);
    fuzz_note_number(e->error_code);
    switch (e->type) {
    case XL_EVENT_CONNECTED:
        if (is_server && !p->sc)
            p->sc = e->connection;
        break;
    case XL_EVENT_STREAM_READABLE:
        if (e->connection == (is_server ? p->sc : p->cc))
            live_read(l, e->connection, e->stream_id);
        break;
    case XL_EVENT_STREAM_WRITABLE:
        for (size_t i = 0; is_server && i < PAIR_REQUESTS; i++)
            if (l->answer[i].used && l->answer[i].id == e->stream_id)
                live_answer(l, i);
        break;
    case XL_EVENT_DATAGRAM:
        if (e->connection == (is_server ? p->sc : p->cc))
            live_read_datagrams(e->connection);
        break;
    case XL_EVENT_CLOSED:
        FUZZ_CHECK(memchr(e->reason, 0, sizeof e->reason) != NULL);
        if (e->connection == p->cc)
            p->client_closed = true;
        else if (e->connection == p->sc)
            p->server_closed = true;
        else
            xl_connection_free(e->connection);
        break;
    default:
        break;
    }
}

static inline void live_events(live *l) {
    xl_event e;
    for (int is_server = 0; is_server < 2; is_server++) {
        unsigned events = 0;
        while (xl_endpoint_poll_event(is_server ? l->p.server : l->p.client, &e)) {
            FUZZ_CHECK(++events < LIVE_MOMENT_EVENTS);
            live_take_event(l, is_server, &e);
        }
    }
}

/* ---- datagrams and time ---- */

/* Whether the datagram may validate its source address: a Handshake or 1-RTT packet, or one with a token. */
static inline bool live_shows_address(const uint8_t *data, size_t len) {
    xl_packet_header h;
    while (len > 0 && xl_packet_parse(data, len, XL_LOCAL_CID_BYTES, &h) == 0) {
        if (h.type == XL_PACKET_HANDSHAKE || h.type == XL_PACKET_1RTT || h.token_len > 0)
            return true;
        data += h.total_len;
        len -= h.total_len;
    }
    return false;
}

static inline void live_deliver(live *l, bool to_server, const xl_addr *local, const xl_addr *remote,
                                const uint8_t *data, size_t len) {
    if (to_server && live_is_victim(remote))
        l->from_victim[remote->port % LIVE_VICTIMS] += len;
    for (size_t i = 0; to_server && i < l->p.link_count; i++)
        if (xl_addr_equal(remote, &l->p.link[i].client) || xl_addr_equal(remote, &l->p.link[i].nat)) {
            l->from_link[i] += len;
            l->may_be_valid[i] |= live_shows_address(data, len);
        }
    uint8_t *exact = fuzz_copy(data, len);
    xl_datagram d = {.local = *local, .remote = *remote, .len = len};
    xl_endpoint_receive(to_server ? l->p.server : l->p.client, &d, exact, l->p.now);
    free(exact);
}

static inline void live_sent(live *l, bool to_server, const xl_datagram *d, const uint8_t *data) {
    FUZZ_CHECK(d->len > 0 && d->len <= PAIR_MTU);
    l->datagrams++;
    fuzz_note(data, d->len);
    if (!to_server && live_is_victim(&d->remote)) {
        l->to_victim[d->remote.port % LIVE_VICTIMS] += d->len;
        return;
    }
    live_sight *s = &l->seen[l->seen_count++ % LIVE_SEEN];
    *s = (live_sight){.to_server = to_server, .len = d->len, .local = d->remote, .remote = d->local};
    memcpy(s->data, data, d->len);
    pair_enqueue(&l->p, to_server, d, data);
}

static inline void live_flush(live *l) {
    uint8_t buf[PAIR_MTU + 64];
    unsigned sent = 0;
    bool busy = true;
    while (busy) {
        busy = false;
        live_events(l);
        for (int to_server = 0; to_server < 2; to_server++) {
            xl_datagram d;
            while (xl_endpoint_transmit(to_server ? l->p.client : l->p.server, buf, PAIR_MTU, &d, l->p.now) > 0) {
                FUZZ_CHECK(++sent < LIVE_MOMENT_DATAGRAMS);
                live_sent(l, to_server, &d, buf);
                busy = true;
            }
        }
    }
}

static inline uint64_t live_next(live *l) {
    uint64_t a = xl_endpoint_next_timeout(l->p.client), b = xl_endpoint_next_timeout(l->p.server);
    uint64_t at = a < b ? a : b;
    return l->p.queue && l->p.queue->at < at ? l->p.queue->at : at;
}

/* Handles everything that is due now, and its immediate consequences. */
static inline void live_moment(live *l) {
    pair *p = &l->p;
    for (int steps = 0; live_next(l) <= p->now; steps++) {
        FUZZ_CHECK(steps < LIVE_MOMENT_STEPS);
        for (unsigned n = 0; p->queue && p->queue->at <= p->now; n++) {
            pair_datagram *q = p->queue;
            p->queue = q->next;
            live_deliver(l, q->to_server, &q->d.local, &q->d.remote, q->data, q->d.len);
            free(q);
        }
        xl_endpoint_handle_timeout(p->client, p->now);
        xl_endpoint_handle_timeout(p->server, p->now);
        live_flush(l);
    }
    live_check(l);
}

static inline bool live_is_over(const live *l) {
    return (l->p.client_closed && l->p.server_closed) || l->datagrams > LIVE_DATAGRAMS;
}

/* Advances the clock by a duration. Each step is a received datagram or a timer; the number of timers is bounded. */
static inline void live_run(live *l, uint64_t duration_us) {
    pair *p = &l->p;
    uint64_t end = p->now + duration_us, before = l->datagrams, steps = 0;
    live_flush(l);
    live_moment(l);
    while (live_next(l) <= end && !live_is_over(l)) {
        uint64_t at = live_next(l);
        FUZZ_CHECK(at > p->now);
        p->now = at;
        live_moment(l);
        FUZZ_CHECK(++steps <= 4096 + 8 * (l->datagrams - before) + duration_us / 1000);
    }
    if (!live_is_over(l))
        p->now = end;
}

/* ---- life ---- */

static inline void live_init(live *l, fuzz_input *in, uint64_t seed, size_t links) {
    pair *p = &l->p;
    memset(l, 0, sizeof *l);
    l->in = in;
    l->memory_before = live_memory();
    pair_init(p, seed, links, 0);
    for (int side = 0; side < 2; side++) {
        xl_config *c = side ? &p->server_config : &p->client_config;
        fuzz_qlog_init(&l->qlog[side]);
        c->log = fuzz_qlog_log(&l->qlog[side]);
        c->limits.max_data = 256 << 10;
        c->limits.max_stream_data = 128 << 10;
        c->limits.send_buffer_bytes = 64 << 10;
        c->limits.max_streams_bidi = 20;
        c->limits.max_streams_uni = 8;
        c->limits.max_datagram_frame_bytes = 1000;
        c->limits.datagram_queue_bytes = LIVE_DATAGRAM_BYTES;
        c->limits.enable_ack_frequency = true;
        c->null_crypto = true;
    }
    for (size_t i = 0; i < links; i++)
        p->link[i] = (pair_link){.client = pair_addr((uint8_t)(i + 2), 4000),
                                 .server = pair_addr(1, 443),
                                 .delay_us = {5000 + 7000 * i, 5000 + 7000 * i},
                                 .bytes_per_s = {2500000, 2500000},
                                 .queue_us = 200000};
}

static inline void live_free(live *l) {
    pair_free(&l->p);
    fuzz_qlog_free(&l->qlog[0]);
    fuzz_qlog_free(&l->qlog[1]);
}
