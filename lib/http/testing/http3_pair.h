/* For tests: HTTP/3 between two real endpoints in one process, with datagrams in memory and a virtual clock. Each side
 * is a session of http3.h, or the test writes its streams by hand. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/air.h"
#include "base/numbers.h"
#include "http/http3.h"

#define ONE_WAY_US   10000
#define MAX_REQUESTS 16
#define SEND_BUFFER  (256 * 1024)

typedef struct {
    bool used, responded, ended, aborted, wrong_content;
    uint64_t stream, abort_code;
    h3_response_head head;
    uint64_t received;
} exchange;

/* One side: its endpoint, its connection, and unless by_hand its HTTP/3 session. */
typedef struct {
    xl_endpoint *endpoint;
    xl_connection *connection;
    h3_session *session;
    bool by_hand, connected, closed;
    uint64_t close_code;
    bool application_error;
} side;

typedef struct {
    uint64_t now;
    xl_credentials *server_credentials, *client_credentials;
    side client, server;
    air air;

    /* The server's response, and what happened to it. */
    uint64_t body_bytes;
    uint64_t fail_body_at; /* UINT64_MAX: never */
    h3_body_mark mark;
    uint64_t body_pulled;
    unsigned requests, bodies_open, responses_written, responses_acknowledged, server_aborts, client_goaways;
    uint64_t server_abort_code;
    char last_path[64], last_range[64], last_method[16];

    exchange exchanges[MAX_REQUESTS];
    uint8_t raw[65536]; /* stream read by hand */
    size_t raw_len;
    uint64_t raw_stream;
    bool raw_fin;
} pair;

static inline uint8_t content(uint64_t i) {
    return (uint8_t)((i * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

/* ---- server application ---- */

static inline bool read_body(void *user, uint64_t offset, uint8_t *buf, size_t len) {
    pair *p = user;
    if (offset + len > p->fail_body_at)
        return false;
    for (size_t i = 0; i < len; i++)
        buf[i] = content(offset + i);
    p->body_pulled += len;
    return true;
}

static inline void close_body(void *user) {
    pair *p = user;
    p->bodies_open--;
}

static inline void on_request(void *user, uint64_t stream, const h3_request *request) {
    pair *p = user;
    p->requests++;
    snprintf(p->last_path, sizeof p->last_path, "%s", request->path);
    snprintf(p->last_range, sizeof p->last_range, "%s", request->range ? request->range : "");
    snprintf(p->last_method, sizeof p->last_method, "%s", request->method);
    char length[24], range[64];
    snprintf(length, sizeof length, "%llu", (unsigned long long)p->body_bytes);
    snprintf(range, sizeof range, "bytes 100-%llu/%llu", (unsigned long long)(99 + p->body_bytes),
             (unsigned long long)(1000 + p->body_bytes));
    const h3_header headers[] = {{"content-length", length}, {"content-range", range}};
    if (strcmp(request->method, "HEAD") == 0) {
        assert_int_equal(h3_respond(p->server.session, stream, 200, headers, 1, NULL, NULL), 0);
        return;
    }
    p->bodies_open++;
    const h3_body body = {.length = p->body_bytes, .read = read_body, .close = close_body, .user = p};
    assert_int_equal(h3_respond(p->server.session, stream, 206, headers, 2, &body, &p->mark), 0);
}

static inline void on_response_written(void *user, uint64_t stream) {
    (void)stream;
    ((pair *)user)->responses_written++;
}

static inline void on_response_acknowledged(void *user, uint64_t stream) {
    (void)stream;
    ((pair *)user)->responses_acknowledged++;
}

static inline void on_server_abort(void *user, uint64_t stream, uint64_t code) {
    pair *p = user;
    (void)stream;
    p->server_aborts++;
    p->server_abort_code = code;
}

/* ---- client application ---- */

static inline exchange *find_exchange(pair *p, uint64_t stream) {
    for (size_t i = 0; i < MAX_REQUESTS; i++)
        if (p->exchanges[i].used && p->exchanges[i].stream == stream)
            return &p->exchanges[i];
    fail_msg("callback for an unknown stream");
    return NULL;
}

static inline void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->responded);
    e->responded = true;
    e->head = *head;
}

static inline void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    exchange *e = find_exchange(user, stream);
    assert_true(e->responded && !e->ended && !e->aborted);
    for (size_t i = 0; i < len; i++)
        e->wrong_content |= data[i] != content(e->received + i);
    e->received += len;
}

static inline void on_end(void *user, uint64_t stream) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->ended || e->aborted);
    e->ended = true;
}

static inline void on_abort(void *user, uint64_t stream, uint64_t code) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->ended || e->aborted);
    e->aborted = true;
    e->abort_code = code;
}

static inline void on_goaway(void *user) {
    ((pair *)user)->client_goaways++;
}

static inline int get(pair *p, size_t slot, const char *method, const char *range) {
    exchange *e = &p->exchanges[slot];
    const h3_header headers[] = {{"range", range ? range : ""}};
    int rv = h3_submit(p->client.session, method, "server.test", "/synthetic/1000", headers, range ? 1 : 0, &e->stream);
    e->used = rv == 0;
    return rv;
}

/* ---- the network and the two sides ---- */

static inline void read_raw(pair *p, side *s) {
    ssize_t n = 1;
    while (n > 0 && !p->raw_fin) {
        n = xl_stream_read(s->connection, p->raw_stream, p->raw + p->raw_len, sizeof p->raw - p->raw_len, &p->raw_fin);
        p->raw_len += n > 0 ? (size_t)n : 0;
    }
}

static inline void side_events(pair *p, side *s, bool is_server) {
    xl_event event;
    while (xl_endpoint_poll_event(s->endpoint, &event)) {
        if (event.type == XL_EVENT_CONNECTED) {
            s->connected = true;
            s->connection = event.connection;
            if (!s->by_hand && is_server) {
                const h3_callbacks callbacks = {.user = p,
                                                .request = on_request,
                                                .response_written = on_response_written,
                                                .response_acknowledged = on_response_acknowledged,
                                                .abort = on_server_abort};
                s->session = h3_session_server(event.connection, &callbacks);
                assert_non_null(s->session);
            }
        }
        if (event.type == XL_EVENT_CLOSED) {
            s->closed = true;
            s->close_code = event.error_code;
            s->application_error = event.application_error;
        }
        if (s->by_hand && event.type == XL_EVENT_STREAM_READABLE && event.stream_id == p->raw_stream)
            read_raw(p, s);
        if (s->session && event.type != XL_EVENT_CLOSED)
            h3_on_event(s->session, &event, p->now);
    }
    if (s->session && !s->closed)
        h3_pump(s->session, p->now);
}

static inline void side_timeout(pair *p, side *s) {
    if (xl_endpoint_next_timeout(s->endpoint) <= p->now)
        xl_endpoint_handle_timeout(s->endpoint, p->now);
}

/* Handles everything that is due now, then advances the clock to the next event, at most to `until`. */
static inline void step(pair *p, uint64_t until) {
    air_deliver(&p->air, p->client.endpoint, p->server.endpoint, p->now);
    side_timeout(p, &p->client);
    side_timeout(p, &p->server);
    side_events(p, &p->client, false);
    side_events(p, &p->server, true);
    air_take(&p->air, p->client.endpoint, true, p->now);
    air_take(&p->air, p->server.endpoint, false, p->now);
    uint64_t next = min_u64(xl_endpoint_next_timeout(p->client.endpoint), xl_endpoint_next_timeout(p->server.endpoint));
    next = min_u64(until, min_u64(next, air_next(&p->air)));
    p->now = next > p->now ? next : p->now + 1;
}

static inline void run(pair *p, uint64_t us) {
    uint64_t until = p->now + us;
    while (p->now < until)
        step(p, until);
}

static inline pair *pair_begin(bool client_by_hand, bool server_by_hand, bool greases) {
    pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->air.one_way_us = ONE_WAY_US;
    p->now = 1000000;
    p->fail_body_at = UINT64_MAX;
    p->raw_stream = UINT64_MAX;
    p->server_credentials = xl_credentials_self_signed("server.test", (uint8_t[XL_RANDOM_KEY_BYTES]){1}, 1700000000);
    p->client_credentials = xl_credentials_client(NULL);
    assert_non_null(p->server_credentials);
    assert_non_null(p->client_credentials);
    xl_config config;
    xl_config_init(&config);
    config.alpn = "h3";
    assert_int_equal(0, xl_random_key_from_seed(7, "pair", config.random_key));
    config.limits.max_udp_payload_bytes = AIR_MTU;
    config.limits.send_buffer_bytes = SEND_BUFFER;
    config.limits.grease = greases;
    config.credentials = p->client_credentials;
    int error = 0;
    p->client.endpoint = xl_endpoint_new(&config, p->now, &error);
    assert_non_null(p->client.endpoint);
    config.is_server = true;
    assert_int_equal(0, xl_random_key_from_seed(8, "pair", config.random_key));
    config.credentials = p->server_credentials;
    p->server.endpoint = xl_endpoint_new(&config, p->now, &error);
    assert_non_null(p->server.endpoint);

    const xl_addr local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 50000};
    const xl_addr remote = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443};
    p->client.connection =
        xl_endpoint_connect(p->client.endpoint, "server.test", &local, &remote, XL_TECH_WIFI, p->now);
    assert_non_null(p->client.connection);
    p->client.by_hand = client_by_hand;
    p->server.by_hand = server_by_hand;
    if (!client_by_hand) {
        const h3_callbacks callbacks = {
            .user = p, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort, .goaway = on_goaway};
        p->client.session = h3_session_client(p->client.connection, &callbacks);
        assert_non_null(p->client.session);
        assert_int_equal(get(p, 0, "GET", NULL), XL_ERR_STREAM_STATE);
    }
    run(p, 200000);
    assert_true(p->client.connected);
    assert_true(p->server.connected);
    return p;
}

static inline pair *pair_new(bool client_by_hand) {
    return pair_begin(client_by_hand, false, false);
}

static inline void pair_free(pair *p) {
    h3_session_free(p->client.session);
    h3_session_free(p->server.session);
    assert_int_equal(p->bodies_open, 0);
    xl_endpoint_free(p->client.endpoint);
    xl_endpoint_free(p->server.endpoint);
    xl_credentials_free(p->client_credentials);
    xl_credentials_free(p->server_credentials);
    air_clear(&p->air);
    free(p);
}
