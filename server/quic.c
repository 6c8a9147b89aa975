/* HTTP/3 over libxlink: one wildcard socket, as many connections as come. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "http/http3.h"
#include "http/quic_scheme.h"
#include "http/text_file.h"
#include "server/server.h"
#include "xlink/log_files.h"
#include "xlink/udp.h"

#define MAX_SUMMARY_PATHS   1024 /* paths named in the summary; their bytes are counted beyond that too */
#define SERVER_NAME         "xlink-server"
#define CLOCK_SKEW_ALLOWED  86400 /* seconds that a client's clock may be behind for the self-signed certificate */
#define FIRST_FRAME_URGENCY 0

struct server_service {
    server *owner;
    xl_log_files *logs;
    xl_credentials *credentials;
    xl_udp *udp;
    xl_endpoint *endpoint;
    server_watch watch;
    bool watching;
    struct connection *connections;
    uint64_t now; /* of the running call, for callbacks */
    server_totals totals;
};

typedef struct connection {
    struct connection *next;
    server_service *service;
    xl_connection *quic;
    h3_session *h3;
    uint64_t number;
    uint64_t requests;
    struct response *responses; /* bodies that are still open */
} connection;

/* The answer to one request, until it is acknowledged or given up. */
typedef struct response {
    struct response *next;
    connection *owner;
    uint64_t stream, bytes;
    catalogue_body body;
    bool body_closed;
} response;

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
    if (!r->body_closed)
        catalogue_body_close(&r->body);
    r->body_closed = true;
}

/* Forgets the response of a stream; its body is closed by then, or by the session. */
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
    out[n++] = (h3_header){"server", SERVER_NAME};
    out[n++] = (h3_header){"content-length", length};
    if (answer->content_type)
        out[n++] = (h3_header){"content-type", answer->content_type};
    if (answer->content_range[0])
        out[n++] = (h3_header){"content-range", answer->content_range};
    if (answer->accept_ranges)
        out[n++] = (h3_header){"accept-ranges", "bytes"};
    if (answer->allow)
        out[n++] = (h3_header){"allow", "GET, HEAD"};
    return n;
}

static void log_request(const connection *c, uint64_t stream, const h3_request *request,
                        const catalogue_response *answer) {
    bool has_range = answer->content_length > 0 && answer->status < 300;
    json_t *path = json_string(request->path); /* NULL when it is not UTF-8 */
    json_t *fields = json_pack("{s:I, s:I, s:o, s:i, s:o, s:o}", "conn", (json_int_t)c->number, "stream",
                               (json_int_t)stream, "path", path ? path : json_null(), "status", answer->status, "first",
                               has_range ? json_integer((json_int_t)answer->first) : json_null(), "last",
                               has_range ? json_integer((json_int_t)answer->last) : json_null());
    server_log(c->service->owner, "request", fields, c->service->now);
}

static void on_request(void *user, uint64_t stream, const h3_request *request) {
    connection *c = user;
    catalogue_response answer;
    catalogue_respond(server_get_catalogue(c->service->owner), request->method, strlen(request->method), request->path,
                      strlen(request->path), request->range, request->range ? strlen(request->range) : 0, &answer);
    c->requests++;
    log_request(c, stream, request, &answer);

    response *r = calloc(1, sizeof *r);
    if (!r) {
        catalogue_body_close(&answer.body);
        h3_cancel(c->h3, stream, H3_INTERNAL_ERROR);
        return;
    }
    *r = (response){.next = c->responses, .owner = c, .stream = stream, .body = answer.body};
    c->responses = r;
    r->bytes = catalogue_body_left(&r->body);

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

static void on_acknowledged(void *user, uint64_t stream) {
    connection *c = user;
    for (const response *r = c->responses; r; r = r->next) {
        if (r->stream == stream)
            server_log(c->service->owner, "response_done",
                       json_pack("{s:I, s:I, s:I}", "conn", (json_int_t)c->number, "stream", (json_int_t)stream,
                                 "bytes", (json_int_t)r->bytes),
                       c->service->now);
    }
    forget_response(c, stream);
}

static void on_abort(void *user, uint64_t stream, uint64_t error_code) {
    connection *c = user;
    server_log(c->service->owner, "response_aborted",
               json_pack("{s:I, s:I, s:I}", "conn", (json_int_t)c->number, "stream", (json_int_t)stream, "error_code",
                         (json_int_t)error_code),
               c->service->now);
    forget_response(c, stream);
}

/* ---- connections ---- */

static connection *accept_connection(server_service *s, xl_connection *quic) {
    connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->service = s;
    c->quic = quic;
    const h3_callbacks callbacks = {
        .user = c, .request = on_request, .response_acknowledged = on_acknowledged, .abort = on_abort};
    c->h3 = h3_session_server(quic, &callbacks);
    if (!c->h3) {
        free(c);
        return NULL;
    }
    c->number = server_next_connection(s->owner);
    c->next = s->connections;
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

static void add_to_totals(server_totals *totals, const xl_connection_stats *stats) {
    totals->stream_bytes_sent += stats->stream_bytes_sent;
    totals->reinjected_bytes += stats->reinjected_bytes;
    totals->retransmitted_bytes += stats->retransmitted_bytes;
    totals->migrations += stats->migrations;
}

/* Logs and adds up what the connection did. */
static void account(connection *c, const xl_event *closed) {
    server_service *s = c->service;
    xl_connection_stats stats;
    xl_connection_get_stats(c->quic, &stats);
    add_to_totals(&s->totals, &stats);
    json_t *paths = json_array();
    for (size_t i = 0; i < stats.path_count; i++) {
        xl_path_stats p;
        if (xl_connection_path_stats(c->quic, i, &p) != 0)
            continue;
        json_array_append_new(paths, path_record(c, &p, true));
        if (json_array_size(s->totals.paths) < MAX_SUMMARY_PATHS)
            json_array_append_new(s->totals.paths, path_record(c, &p, false));
    }
    const char *reason = !closed ? "server" : closed->by_timeout ? "timeout" : closed->by_peer ? "peer" : "error";
    json_t *fields =
        json_pack("{s:I, s:s, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "conn", (json_int_t)c->number,
                  "reason", reason, "error_code", (json_int_t)(closed ? closed->error_code : H3_NO_ERROR),
                  "application_error", closed ? closed->application_error : true, "multipath", (int)stats.multipath,
                  "requests", (json_int_t)c->requests, "stream_bytes_sent", (json_int_t)stats.stream_bytes_sent,
                  "reinjected_bytes", (json_int_t)stats.reinjected_bytes, "retransmitted_bytes",
                  (json_int_t)stats.retransmitted_bytes, "stream_bytes_received",
                  (json_int_t)stats.stream_bytes_received, "migrations", (json_int_t)stats.migrations, "paths", paths);
    server_log(s->owner, "connection_closed", fields, s->now);
}

static void forget_connection(connection *c) {
    for (connection **at = &c->service->connections; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    h3_session_free(c->h3);
    while (c->responses)
        forget_response(c, c->responses->stream);
    xl_connection_free(c->quic);
    free(c);
}

static void on_event(server_service *s, const xl_event *event) {
    connection *c = xl_connection_user(event->connection);
    if (!c && event->type == XL_EVENT_CONNECTED) {
        c = accept_connection(s, event->connection);
        if (!c)
            xl_connection_close(event->connection, H3_INTERNAL_ERROR, "out of memory", s->now);
    }
    if (!c) { /* it ended before, or could not become, an HTTP/3 connection */
        if (event->type == XL_EVENT_CLOSED)
            xl_connection_free(event->connection);
        return;
    }
    if (event->type == XL_EVENT_CLOSED) {
        account(c, event);
        forget_connection(c);
        return;
    }
    h3_on_event(c->h3, event, s->now);
    h3_pump(c->h3, s->now);
}

static void process(server_service *s, uint64_t now) {
    s->now = now;
    if (xl_endpoint_next_timeout(s->endpoint) <= now)
        xl_endpoint_handle_timeout(s->endpoint, now);
    xl_event event;
    while (xl_endpoint_poll_event(s->endpoint, &event))
        on_event(s, &event);
}

/* ---- service ---- */

static void quic_ready(server_watch *watch, uint32_t events, uint64_t now) {
    (void)events;
    server_service *s = watch->user;
    xl_udp_receive(s->udp, s->endpoint, now);
    process(s, now);
}

static void quic_step(server_service *s, uint64_t now) {
    process(s, now);
    xl_udp_flush(s->udp, s->endpoint, now);
}

static uint64_t quic_next_timeout(const server_service *s) {
    return xl_endpoint_next_timeout(s->endpoint);
}

static void quic_stop(server_service *s, uint64_t now) {
    s->now = now;
    for (connection *c = s->connections; c; c = c->next)
        xl_connection_close(c->quic, H3_NO_ERROR, "the server ends", now);
    xl_udp_flush(s->udp, s->endpoint, now);
    while (s->connections) {
        account(s->connections, NULL);
        forget_connection(s->connections);
    }
}

static void quic_add_totals(const server_service *s, server_totals *totals) {
    totals->stream_bytes_sent += s->totals.stream_bytes_sent;
    totals->reinjected_bytes += s->totals.reinjected_bytes;
    totals->retransmitted_bytes += s->totals.retransmitted_bytes;
    totals->migrations += s->totals.migrations;
    totals->connections += s->totals.connections;
    json_array_extend(totals->paths, s->totals.paths);
}

static void quic_free(server_service *s) {
    if (s->watching)
        server_watch_remove(s->owner, &s->watch);
    while (s->connections)
        forget_connection(s->connections);
    if (s->endpoint)
        xl_endpoint_free(s->endpoint);
    xl_udp_free(s->udp);
    if (s->credentials)
        xl_credentials_free(s->credentials);
    xl_log_files_close(s->logs);
    json_decref(s->totals.paths);
    free(s);
}

static bool make_credentials(server_service *s, const server_config *config, char *error) {
    if (!config->cert_file) {
        s->credentials =
            xl_credentials_self_signed(SERVER_NAME, config->seed, (uint64_t)time(NULL) - CLOCK_SKEW_ALLOWED);
        if (!s->credentials)
            snprintf(error, SERVER_ERROR_BYTES, "cannot make a self-signed certificate");
        return s->credentials != NULL;
    }
    if (!config->key_file) {
        snprintf(error, SERVER_ERROR_BYTES, "--cert needs --key");
        return false;
    }
    char *cert = text_file_read(config->cert_file, error, SERVER_ERROR_BYTES);
    char *key = cert ? text_file_read(config->key_file, error, SERVER_ERROR_BYTES) : NULL;
    if (key) {
        s->credentials = xl_credentials_server(cert, key);
        if (!s->credentials)
            snprintf(error, SERVER_ERROR_BYTES, "%s and %s are not a certificate and its key in PEM form",
                     config->cert_file, config->key_file);
        memset(key, 0, strlen(key));
    }
    free(cert);
    free(key);
    return s->credentials != NULL;
}

static bool make_endpoint(server_service *s, const server_config *config, uint64_t now, char *error) {
    xl_config c;
    xl_config_init(&c);
    c.is_server = true;
    c.alpn = "h3";
    c.seed = config->seed;
    c.credentials = s->credentials;
    c.log = xl_log_files_log(s->logs);
    c.max_udp_payload_bytes = QUIC_UDP_PAYLOAD_BYTES;
    if (!quic_scheme_apply(config->scheme, &c)) {
        snprintf(error, SERVER_ERROR_BYTES, "unknown scheme %s", config->scheme);
        return false;
    }
    if (config->reinjection)
        c.reinjection = config->reinjection;
    if (config->congestion)
        c.congestion = config->congestion;
    if (config->ack_path_given)
        c.ack_path = config->ack_path;
    if (config->t_th1_given)
        c.t_th1_us = config->t_th1_us;
    if (config->t_th2_given)
        c.t_th2_us = config->t_th2_us;
    if (config->send_buffer_bytes)
        c.send_buffer_bytes = (size_t)config->send_buffer_bytes;
    int rv = 0;
    s->endpoint = xl_endpoint_new(&c, now, &rv);
    if (!s->endpoint)
        snprintf(error, SERVER_ERROR_BYTES,
                 rv == XL_ERR_ARGUMENT ? "unknown --reinjection %s or --cc %s" : "cannot start (%s, %s): out of memory",
                 c.reinjection, c.congestion ? c.congestion : "(default)");
    return s->endpoint != NULL;
}

static bool listen_on(server_service *s, const server_config *config, xl_addr *bound, char *error) {
    char text[64];
    s->udp = xl_udp_new();
    int rv = s->udp ? xl_udp_add_socket(s->udp, &config->quic_addr, bound) : -errno;
    if (rv < 0) {
        snprintf(error, SERVER_ERROR_BYTES, "cannot listen on %s: %s",
                 xl_addr_format(&config->quic_addr, text, sizeof text), strerror(-rv));
        return false;
    }
    s->watch = (server_watch){.fd = xl_udp_fd(s->udp), .ready = quic_ready, .user = s};
    s->watching = server_watch_add(s->owner, &s->watch, EPOLLIN);
    if (!s->watching)
        snprintf(error, SERVER_ERROR_BYTES, "cannot watch the socket: %s", strerror(errno));
    return s->watching;
}

static server_service *quic_start(server *owner, uint64_t now, xl_addr *bound, char *error) {
    const server_config *config = server_get_config(owner);
    server_service *s = calloc(1, sizeof *s);
    if (!s) {
        snprintf(error, SERVER_ERROR_BYTES, "out of memory");
        return NULL;
    }
    s->owner = owner;
    s->totals.paths = json_array();
    s->logs = xl_log_files_open(config->qlog_dir, config->keylog_file, error, SERVER_ERROR_BYTES);
    if (!s->logs || !make_credentials(s, config, error) || !make_endpoint(s, config, now, error) ||
        !listen_on(s, config, bound, error)) {
        quic_free(s);
        return NULL;
    }
    return s;
}

static bool quic_wanted(const server_config *config) {
    return config->quic;
}

const server_service_ops server_quic_service = {
    .name = "quic",
    .wanted = quic_wanted,
    .start = quic_start,
    .next_timeout = quic_next_timeout,
    .step = quic_step,
    .stop = quic_stop,
    .add_totals = quic_add_totals,
    .free = quic_free,
};
