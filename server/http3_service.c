#include "server/http3_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/hq.h"
#include "server/report.h"

#define FIRST_FRAME_URGENCY 0
/* Flow control windows for requests, which have no content: of one, and of all of a connection, in bytes. */
#define REQUEST_WINDOW  65536
#define REQUESTS_WINDOW (4 * 65536)
/* Responses with open bodies: OPEN_RESERVED of each connection, and more while the service has under OPEN_SHARED. */
#define OPEN_RESERVED 16
#define OPEN_SHARED   4096

#define FAILURE_RECORD_US 1000000
#define APPLICATION_ERROR 0x0c
/* A session rests when it was silent for longer than a player waits between two chunks. */
#define RESTS_AFTER_US 5000000
#define RESTS_A_CALL   16

struct http3_service {
    xl_endpoint *endpoint;
    catalogue *videos;
    http3_service_hooks hooks;
    struct connection *connections;
    struct connection *awake, *awake_last; /* HTTP/3 connections that do not rest, least recently active first */
    size_t open_responses;
    uint64_t now;                                /* time of the current call, for callbacks */
    uint64_t failure_noted_at, failures_unnoted; /* handshakes that failed */
    server_totals totals;
};

typedef struct connection {
    struct connection *prev, *next;
    http3_service *service;
    xl_connection *quic;
    h3_session *h3; /* one of the two, by the negotiated ALPN */
    hq_session *hq;
    uint64_t number;
    uint64_t requests;
    uint64_t active_at; /* time of its newest event */
    struct connection *awake_prev, *awake_next;
    bool is_awake;
    struct response *responses; /* not yet acknowledged */
    size_t open_responses;      /* responses with an open body */
} connection;

/* The answer to one request, until it is acknowledged or abandoned. */
typedef struct response {
    struct response *next;
    connection *owner;
    uint64_t stream, bytes;
    catalogue_body body;
    bool body_closed;
} response;

static void note(const http3_service *s, const char *event, json_t *fields) {
    s->hooks.log(s->hooks.user, event, fields, s->now);
}

/* ---- responses ---- */

static bool read_body(void *user, uint64_t offset, uint8_t *buf, size_t len) {
    response *r = user;
    (void)offset; /* bodies are read in order */
    for (size_t at = 0; at < len;) {
        ssize_t n = catalogue_body_read(&r->body, buf + at, len - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void close_body(void *user) {
    response *r = user;
    if (r->body_closed)
        return;
    catalogue_body_close(&r->body);
    r->body_closed = true;
    r->owner->open_responses--;
    r->owner->service->open_responses--;
}

/* Forgets the response of a stream. Its body is already closed, or the session closes it. */
static void forget_response(connection *c, uint64_t stream) {
    for (response **at = &c->responses; *at; at = &(*at)->next) {
        if ((*at)->stream == stream) {
            response *r = *at;
            *at = r->next;
            close_body(r);
            free(r);
            return;
        }
    }
}

static size_t response_headers(const catalogue_response *answer, const char *length, h3_header *out) {
    size_t n = 0;
    out[n++] = (h3_header){"server", HTTP3_SERVER_NAME};
    out[n++] = (h3_header){"content-length", length};
    if (answer->content_type)
        out[n++] = (h3_header){"content-type", answer->content_type};
    if (answer->content_range[0])
        out[n++] = (h3_header){"content-range", answer->content_range};
    if (answer->accept_ranges)
        out[n++] = (h3_header){"accept-ranges", "bytes"};
    if (answer->allow)
        out[n++] = (h3_header){"allow", "GET, HEAD"};
    if (answer->retry_after)
        out[n++] = (h3_header){"retry-after", CATALOGUE_RETRY_AFTER};
    return n;
}

/* The catalogue's answer, or a 503 if there is no room for another open body. */
static void decide(connection *c, const h3_request *request, catalogue_response *answer) {
    catalogue_respond(c->service->videos, request->method, request->path, request->range, answer);
    bool has_room = c->open_responses < OPEN_RESERVED || c->service->open_responses < OPEN_SHARED;
    if (!has_room && catalogue_body_left(&answer->body) > 0)
        catalogue_refuse(answer);
}

/* NULL: out of memory. */
static response *remember_response(connection *c, uint64_t stream, catalogue_response *answer) {
    response *r = calloc(1, sizeof *r);
    if (!r) {
        catalogue_body_close(&answer->body);
        return NULL;
    }
    *r = (response){.next = c->responses, .owner = c, .stream = stream, .body = answer->body};
    c->responses = r;
    c->open_responses++;
    c->service->open_responses++;
    r->bytes = catalogue_body_left(&r->body);
    return r;
}

static void on_request(void *user, uint64_t stream, const h3_request *request) {
    connection *c = user;
    catalogue_response answer;
    decide(c, request, &answer);
    c->requests++;
    note(c->service, "request", server_request_fields(c->number, stream, request->path, &answer));

    response *r = remember_response(c, stream, &answer);
    if (!r) {
        h3_cancel(c->h3, stream, H3_INTERNAL_ERROR);
        return;
    }
    h3_header headers[8];
    char length[24];
    snprintf(length, sizeof length, "%" PRIu64, answer.content_length);
    size_t count = response_headers(&answer, length, headers);
    const h3_body body = {.length = r->bytes, .read = read_body, .close = close_body, .user = r};
    const h3_body_mark mark = {
        .first = answer.frame_position, .size = answer.frame_bytes, .priority = FIRST_FRAME_URGENCY};
    if (r->bytes == 0)
        close_body(r);
    if (h3_respond(c->h3, stream, (unsigned)answer.status, headers, count, r->bytes > 0 ? &body : NULL, &mark) != 0) {
        h3_cancel(c->h3, stream, H3_INTERNAL_ERROR);
        forget_response(c, stream);
    }
}

/* HTTP/0.9 has no status: the error code of the reset says whether to retry. */
static void on_hq_request(void *user, uint64_t stream, const char *path) {
    connection *c = user;
    catalogue_response answer;
    const h3_request request = {.method = "GET", .path = path, .authority = ""};
    decide(c, &request, &answer);
    c->requests++;
    note(c->service, "request", server_request_fields(c->number, stream, path, &answer));
    if (answer.status != 200) {
        catalogue_body_close(&answer.body);
        hq_refuse(c->hq, stream, answer.status == 503 ? H3_REQUEST_REJECTED : HQ_NOT_FOUND);
        return;
    }
    response *r = remember_response(c, stream, &answer);
    if (!r) {
        hq_refuse(c->hq, stream, H3_REQUEST_REJECTED);
        return;
    }
    const h3_body body = {.length = r->bytes, .read = read_body, .close = close_body, .user = r};
    if (hq_respond(c->hq, stream, &body) != 0)
        forget_response(c, stream);
}

static void on_acknowledged(void *user, uint64_t stream) {
    connection *c = user;
    for (const response *r = c->responses; r; r = r->next) {
        if (r->stream == stream)
            note(c->service, "response_done",
                 json_pack("{s:I, s:I, s:I}", "conn", (json_int_t)c->number, "stream", (json_int_t)stream, "bytes",
                           (json_int_t)r->bytes));
    }
    forget_response(c, stream);
}

static void on_abort(void *user, uint64_t stream, uint64_t error_code) {
    connection *c = user;
    note(c->service, "response_aborted",
         json_pack("{s:I, s:I, s:I}", "conn", (json_int_t)c->number, "stream", (json_int_t)stream, "error_code",
                   (json_int_t)error_code));
    forget_response(c, stream);
}

/* ---- connections ---- */

static bool open_session(connection *c) {
    const h3_callbacks h3 = {
        .user = c, .request = on_request, .response_acknowledged = on_acknowledged, .abort = on_abort};
    const hq_callbacks hq = {.user = c, .request = on_hq_request, .acknowledged = on_acknowledged, .abort = on_abort};
    if (strcmp(xl_connection_alpn(c->quic), HQ_ALPN) == 0)
        return (c->hq = hq_session_new(c->quic, true, &hq));
    return (c->h3 = h3_session_server(c->quic, &h3));
}

static void leave_awake(connection *c) {
    http3_service *s = c->service;
    if (!c->is_awake)
        return;
    *(c->awake_prev ? &c->awake_prev->awake_next : &s->awake) = c->awake_next;
    *(c->awake_next ? &c->awake_next->awake_prev : &s->awake_last) = c->awake_prev;
    c->is_awake = false;
}

static void note_event(connection *c, uint64_t now) {
    http3_service *s = c->service;
    leave_awake(c);
    c->active_at = now;
    c->awake_prev = s->awake_last;
    c->awake_next = NULL;
    *(s->awake_last ? &s->awake_last->awake_next : &s->awake) = c;
    s->awake_last = c;
    c->is_awake = true;
}

/* Frees memory of connections that rest: RESTS_A_CALL of them, so that no call takes long. */
static void rest(http3_service *s) {
    for (int i = 0; i < RESTS_A_CALL && s->awake && s->now - s->awake->active_at >= RESTS_AFTER_US; i++) {
        connection *c = s->awake;
        leave_awake(c);
        h3_rest(c->h3);
        xl_connection_rest(c->quic);
    }
}

static void on_session_event(connection *c, const xl_event *event, uint64_t now) {
    if (c->hq) {
        hq_on_event(c->hq, event);
        hq_pump(c->hq);
    } else {
        h3_on_event(c->h3, event, now);
        h3_pump(c->h3, now);
        note_event(c, now);
    }
}

static connection *accept_connection(http3_service *s, xl_connection *quic) {
    connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->service = s;
    c->quic = quic;
    if (!open_session(c)) {
        free(c);
        return NULL;
    }
    c->number = s->hooks.next_connection(s->hooks.user);
    c->next = s->connections;
    if (c->next)
        c->next->prev = c;
    s->connections = c;
    s->totals.connections++;
    xl_connection_set_user(quic, c);
    return c;
}

static json_t *path_record(const connection *c, const xl_path_stats *p, bool whole) {
    char remote[64], local[64];
    json_t *record = json_pack("{s:i, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "id", p->index, "conn",
                               (json_int_t)c->number, "remote", xl_addr_format(&p->remote, remote, sizeof remote),
                               "bytes_sent", (json_int_t)p->bytes_sent, "bytes_received", (json_int_t)p->bytes_received,
                               "packets_sent", (json_int_t)p->packets_sent, "packets_lost", (json_int_t)p->packets_lost,
                               "srtt_us", (json_int_t)p->srtt_us, "cwnd_bytes", (json_int_t)p->cwnd_bytes);
    if (record && whole) {
        json_t *more = json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "local", xl_addr_format(&p->local, local, sizeof local), "state",
            xl_path_state_name(p->state), "stream_bytes_sent", (json_int_t)p->stream_bytes_sent, "reinjected_bytes",
            (json_int_t)p->reinjected_bytes, "retransmitted_bytes", (json_int_t)p->retransmitted_bytes, "pto_count",
            (json_int_t)p->pto_count, "min_rtt_us", (json_int_t)p->min_rtt_us);
        if (more)
            json_object_update(record, more);
        json_decref(more);
    }
    return record;
}

static const char *reason_word(xl_close_reason reason) {
    switch (reason) {
    case XL_CLOSE_PEER:
    case XL_CLOSE_STATELESS_RESET:
        return "peer";
    case XL_CLOSE_IDLE_TIMEOUT:
    case XL_CLOSE_HANDSHAKE_TIMEOUT:
        return "timeout";
    case XL_CLOSE_LOCAL:
    case XL_CLOSE_VERSION:
    case XL_CLOSE_INTERNAL:
        break;
    }
    return "error";
}

/* Logs the connection's figures and adds them to the totals. */
static void account(connection *c, const xl_event *closed) {
    http3_service *s = c->service;
    xl_connection_stats stats;
    xl_connection_get_stats(c->quic, &stats);
    s->totals.stream_bytes_sent += stats.stream_bytes_sent;
    s->totals.reinjected_bytes += stats.reinjected_bytes;
    s->totals.retransmitted_bytes += stats.retransmitted_bytes;
    s->totals.given_up_bytes += stats.given_up_bytes;
    s->totals.migrations += stats.migrations;
    json_t *paths = json_array();
    xl_path_stats p;
    for (size_t i = 0; xl_connection_path_stats(c->quic, i, &p) == 0; i++) {
        json_array_append_new(paths, path_record(c, &p, true));
        if (json_array_size(s->totals.paths) < SERVER_SUMMARY_PATHS)
            json_array_append_new(s->totals.paths, path_record(c, &p, false));
    }
    const char *reason = closed ? reason_word(closed->close_reason) : "server";
    json_t *fields =
        json_pack("{s:I, s:s, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "conn", (json_int_t)c->number,
                  "reason", reason, "error_code", (json_int_t)(closed ? closed->error_code : H3_NO_ERROR),
                  "application_error", closed ? closed->application_error : true, "multipath", (int)stats.multipath,
                  "requests", (json_int_t)c->requests, "stream_bytes_sent", (json_int_t)stats.stream_bytes_sent,
                  "reinjected_bytes", (json_int_t)stats.reinjected_bytes, "retransmitted_bytes",
                  (json_int_t)stats.retransmitted_bytes, "stream_bytes_received",
                  (json_int_t)stats.stream_bytes_received, "migrations", (json_int_t)stats.migrations, "paths", paths);
    note(s, "connection_closed", fields);
}

/* Logs failed handshakes, at most one record a second. A client that closed the connection itself did not fail: a
 * player that races two paths does so (RFC 9000 section 10.2.3). */
static void note_failed_handshake(http3_service *s, const xl_event *closed) {
    if (closed->error_code == 0 || closed->error_code == APPLICATION_ERROR)
        return;
    bool is_first = s->failure_noted_at == 0 && s->failures_unnoted == 0;
    s->failures_unnoted++;
    if (!is_first && s->now - s->failure_noted_at < FAILURE_RECORD_US)
        return;
    json_t *fields =
        json_pack("{s:s, s:I, s:s, s:I}", "reason", reason_word(closed->close_reason), "error_code",
                  (json_int_t)closed->error_code, "detail", closed->reason, "count", (json_int_t)s->failures_unnoted);
    s->failure_noted_at = s->now;
    s->failures_unnoted = 0;
    note(s, "handshake_failed", fields);
}

static void forget_connection(connection *c) {
    if (c->prev)
        c->prev->next = c->next;
    else
        c->service->connections = c->next;
    if (c->next)
        c->next->prev = c->prev;
    leave_awake(c);
    h3_session_free(c->h3);
    hq_session_free(c->hq);
    while (c->responses)
        forget_response(c, c->responses->stream);
    xl_connection_free(c->quic);
    free(c);
}

static void on_event(http3_service *s, const xl_event *event) {
    connection *c = xl_connection_user(event->connection);
    bool begins = event->type == XL_EVENT_CONNECTED || event->type == XL_EVENT_EARLY;
    if (!c && begins) {
        c = accept_connection(s, event->connection);
        if (!c)
            xl_connection_close(event->connection, H3_INTERNAL_ERROR, "out of memory", s->now);
    }
    if (!c) { /* it ended before it became an HTTP connection */
        if (event->type == XL_EVENT_CLOSED) {
            note_failed_handshake(s, event);
            xl_connection_free(event->connection);
        }
        return;
    }
    if (event->type == XL_EVENT_CLOSED) {
        account(c, event);
        forget_connection(c);
        return;
    }
    on_session_event(c, event, s->now);
}

/* ---- service ---- */

void http3_service_configure(const server_config *config, xl_config *out) {
    xl_config_init(out);
    out->is_server = true;
    out->alpn = "h3," HQ_ALPN;
    memcpy(out->random_key, config->random_key, sizeof out->random_key);
    out->random_packet_numbers = config->random_packet_numbers;
    out->null_crypto = config->null_crypto;
    quic_settings_configure(&config->settings, out);
    out->limits.max_stream_data = REQUEST_WINDOW;
    out->limits.max_data = REQUESTS_WINDOW;
    if (config->max_connections)
        out->limits.max_connections = (size_t)config->max_connections;
    out->limits.max_per_client = (size_t)server_max_per_address(config, out->limits.max_connections);
}

http3_service *http3_service_new(xl_endpoint *endpoint, catalogue *videos, const http3_service_hooks *hooks) {
    http3_service *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->endpoint = endpoint;
    s->videos = videos;
    s->hooks = *hooks;
    s->totals.paths = json_array();
    return s;
}

void http3_service_process(http3_service *s, uint64_t now) {
    s->now = now;
    xl_endpoint_handle_timeout(s->endpoint, now);
    xl_event event;
    while (xl_endpoint_poll_event(s->endpoint, &event))
        on_event(s, &event);
    rest(s);
}

void http3_service_close(http3_service *s, uint64_t now) {
    for (connection *c = s->connections; c; c = c->next)
        xl_connection_close(c->quic, H3_NO_ERROR, "the server ends", now);
}

void http3_service_finish(http3_service *s, uint64_t now) {
    s->now = now;
    while (s->connections) {
        account(s->connections, NULL);
        forget_connection(s->connections);
    }
}

void http3_service_add_totals(const http3_service *s, server_totals *totals) {
    server_totals_add(totals, &s->totals);
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(s->endpoint, &stats);
    totals->retries += stats.retries;
    totals->refused += stats.refused;
    totals->stateless_resets += stats.stateless_resets;
    totals->misrouted += stats.misrouted;
    totals->forwarded += stats.forwarded;
}

void http3_service_free(http3_service *s) {
    if (!s)
        return;
    while (s->connections)
        forget_connection(s->connections);
    json_decref(s->totals.paths);
    free(s);
}
