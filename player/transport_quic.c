/* HTTP/3 over libxlink, in every QUIC scheme: one connection, one socket for each local address that the scheme uses.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "http/http3.h"
#include "http/quic_scheme.h"
#include "http/text_file.h"
#include "player/transport.h"
#include "xlink/log_files.h"
#include "xlink/udp.h"

#define MAX_TARGET_BYTES 1024

typedef struct {
    bool open;
    uint64_t id, stream; /* the player's name for it, and HTTP/3's */
    uint64_t first, last, received;
} quic_request;

typedef struct {
    player_transport_callbacks cb;
    char target[MAX_TARGET_BYTES + 1], authority[96];
    size_t path_count;
    int to_transport[PLAYER_MAX_PATHS]; /* index of a configured path in the transport; -1: not used by the scheme */

    xl_log_files *logs;
    xl_credentials *credentials;
    xl_udp *udp;
    xl_endpoint *endpoint;
    xl_connection *connection;
    h3_session *h3;
    bool watching, connected, over;
    uint64_t now; /* of the running step, for callbacks */
    unsigned count;
    quic_request requests[];
} quic_transport;

static quic_transport *from_handle(player_transport *t) {
    return (quic_transport *)t;
}

/* ---- life ---- */

static void quic_close(player_transport *handle, uint64_t now) {
    quic_transport *t = from_handle(handle);
    if (t->connection && !t->over) {
        xl_connection_close(t->connection, H3_NO_ERROR, "", now);
        xl_udp_flush(t->udp, t->endpoint, now);
    }
    if (t->watching)
        t->cb.watch(t->cb.user, xl_udp_fd(t->udp), 0);
    h3_session_free(t->h3);
    if (t->endpoint)
        xl_endpoint_free(t->endpoint); /* and its connection */
    xl_udp_free(t->udp);
    if (t->credentials)
        xl_credentials_free(t->credentials);
    xl_log_files_close(t->logs);
    free(t);
}

static bool make_credentials(quic_transport *t, const player_transport_config *config, char *error) {
    char *pem = NULL;
    if (!config->insecure) {
        if (!config->ca_file) {
            snprintf(error, PLAYER_ERROR_BYTES,
                     "QUIC needs --ca FILE to verify the server's certificate, or --insecure");
            return false;
        }
        pem = text_file_read(config->ca_file, error, PLAYER_ERROR_BYTES);
        if (!pem)
            return false;
    }
    t->credentials = xl_credentials_client(pem);
    free(pem);
    if (!t->credentials)
        snprintf(error, PLAYER_ERROR_BYTES, "%s%s",
                 config->insecure ? "out of memory" : "no certificate in PEM form in ",
                 config->insecure ? "" : config->ca_file);
    return t->credentials != NULL;
}

static bool make_endpoint(quic_transport *t, const player_transport_config *config, uint64_t now, char *error) {
    xl_config c;
    xl_config_init(&c);
    c.alpn = "h3";
    c.seed = config->seed;
    c.credentials = t->credentials;
    c.log = xl_log_files_log(t->logs);
    c.max_udp_payload_bytes = QUIC_UDP_PAYLOAD_BYTES;
    c.ack_path = config->ack_path;
    int rv = XL_ERR_ARGUMENT;
    if (quic_scheme_apply(config->scheme, &c))
        t->endpoint = xl_endpoint_new(&c, now, &rv);
    if (!t->endpoint)
        snprintf(error, PLAYER_ERROR_BYTES, rv == XL_ERR_ARGUMENT ? "unknown scheme %s" : "out of memory for scheme %s",
                 config->scheme);
    return t->endpoint != NULL;
}

/* Opens the path's socket; *bound gets its address. */
static bool open_path(quic_transport *t, const player_path *path, uint8_t family, xl_addr *bound, char *error) {
    if (path->local.family != family) {
        snprintf(error, PLAYER_ERROR_BYTES, "path %s and the server are not of the same address family", path->name);
        return false;
    }
    int rv = xl_udp_add_socket(t->udp, &path->local, bound);
    if (rv < 0) {
        char text[64];
        snprintf(error, PLAYER_ERROR_BYTES, "cannot use local address %s of path %s: %s",
                 xl_addr_format(&path->local, text, sizeof text), path->name, strerror(-rv));
    }
    return rv >= 0;
}

/* SNI is the host part of the authority. */
static void host_of(const char *authority, char *host, size_t cap) {
    snprintf(host, cap, "%s", authority + (authority[0] == '['));
    char *end = authority[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    if (end)
        *end = '\0';
}

static bool open_paths(quic_transport *t, const player_transport_config *config, uint64_t now, char *error) {
    size_t used = quic_scheme_uses_all_paths(config->scheme) ? config->path_count : 1;
    char host[sizeof t->authority];
    host_of(t->authority, host, sizeof host);
    for (size_t i = 0; i < config->path_count; i++)
        t->to_transport[i] = -1;
    for (size_t i = 0; i < used; i++) {
        const player_path *path = &config->paths[i];
        xl_addr bound;
        if (!open_path(t, path, config->server.family, &bound, error))
            return false;
        int index = 0;
        if (i == 0)
            t->connection = xl_endpoint_connect(t->endpoint, host, &bound, &config->server, path->technology, now);
        else
            index = xl_connection_add_path(t->connection, &bound, &config->server, path->technology, now);
        if (!t->connection || index < 0) {
            snprintf(error, PLAYER_ERROR_BYTES, "the transport does not take path %s (at most %d)", path->name,
                     XL_MAX_PATHS);
            return false;
        }
        t->to_transport[i] = index;
    }
    return true;
}

static const h3_callbacks *h3_callbacks_for(quic_transport *t, h3_callbacks *out);

static bool start(quic_transport *t, const player_transport_config *config, uint64_t now, char *error) {
    t->logs = xl_log_files_open(config->qlog_dir, config->keylog_file, error, PLAYER_ERROR_BYTES);
    if (!t->logs || !make_credentials(t, config, error) || !make_endpoint(t, config, now, error))
        return false;
    t->udp = xl_udp_new();
    if (!t->udp) {
        snprintf(error, PLAYER_ERROR_BYTES, "no socket driver: %s", strerror(errno));
        return false;
    }
    if (!open_paths(t, config, now, error))
        return false;
    h3_callbacks callbacks;
    t->h3 = h3_session_client(t->connection, h3_callbacks_for(t, &callbacks));
    if (!t->h3) {
        snprintf(error, PLAYER_ERROR_BYTES, "out of memory");
        return false;
    }
    t->watching = true;
    t->cb.watch(t->cb.user, xl_udp_fd(t->udp), EPOLLIN);
    return true;
}

static player_transport *quic_create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                     uint64_t now, char *error) {
    if (strlen(config->target) > MAX_TARGET_BYTES) {
        snprintf(error, PLAYER_ERROR_BYTES, "the URL is longer than %d bytes", MAX_TARGET_BYTES);
        return NULL;
    }
    quic_transport *t = calloc(1, sizeof *t + config->concurrency * sizeof(quic_request));
    if (!t) {
        snprintf(error, PLAYER_ERROR_BYTES, "out of memory");
        return NULL;
    }
    t->cb = *callbacks;
    t->count = config->concurrency;
    t->path_count = config->path_count;
    snprintf(t->target, sizeof t->target, "%s", config->target);
    snprintf(t->authority, sizeof t->authority, "%s", config->authority);
    if (!start(t, config, now, error)) {
        quic_close((player_transport *)t, now);
        return NULL;
    }
    return (player_transport *)t;
}

/* ---- requests ---- */

static quic_request *find_stream(quic_transport *t, uint64_t stream) {
    for (unsigned i = 0; i < t->count; i++) {
        if (t->requests[i].open && t->requests[i].stream == stream)
            return &t->requests[i];
    }
    return NULL;
}

static bool quic_request_range(player_transport *handle, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    quic_transport *t = from_handle(handle);
    quic_request *free_slot = NULL;
    for (unsigned i = 0; i < t->count && !free_slot; i++) {
        if (!t->requests[i].open)
            free_slot = &t->requests[i];
    }
    if (!t->connected || t->over || !free_slot)
        return false;
    char range[64];
    snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, first, last);
    const h3_header headers[] = {{"range", range}};
    uint64_t stream;
    if (h3_submit(t->h3, "GET", t->authority, t->target, headers, 1, &stream) != 0)
        return false;
    *free_slot = (quic_request){.open = true, .id = id, .stream = stream, .first = first, .last = last};
    h3_pump(t->h3, now);
    return true;
}

static void quic_cancel(player_transport *handle, uint64_t id, uint64_t now) {
    (void)now;
    quic_transport *t = from_handle(handle);
    for (unsigned i = 0; i < t->count; i++) {
        if (t->requests[i].open && t->requests[i].id == id) {
            t->requests[i].open = false;
            h3_cancel(t->h3, t->requests[i].stream, H3_REQUEST_CANCELLED);
        }
    }
}

static void request_failed(quic_transport *t, quic_request *r, const char *message) {
    r->open = false;
    h3_cancel(t->h3, r->stream, H3_REQUEST_CANCELLED);
    t->cb.failed(t->cb.user, r->id, message, t->now);
}

/* Does the response's head promise just the bytes that were asked for? */
static bool right_range(const quic_request *r, const h3_response_head *head) {
    if (head->has_content_length && head->content_length != r->last - r->first + 1)
        return false;
    return head->status == 200 ? r->first == 0
                               : head->has_content_range && head->first == r->first && head->last == r->last;
}

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    quic_transport *t = user;
    quic_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (head->status != 200 && head->status != 206) {
        char message[32];
        snprintf(message, sizeof message, "status %u", head->status);
        request_failed(t, r, message);
    } else if (!right_range(r, head)) {
        request_failed(t, r, "the response is not the range that was asked for");
    }
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    quic_transport *t = user;
    quic_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (len > r->last - r->first + 1 - r->received) {
        request_failed(t, r, "more bytes than were asked for");
        return;
    }
    uint64_t offset = r->received;
    r->received += len;
    t->cb.data(t->cb.user, r->id, offset, data, len, t->now);
}

static void on_end(void *user, uint64_t stream) {
    quic_transport *t = user;
    quic_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (r->received < r->last - r->first + 1) {
        request_failed(t, r, "fewer bytes than were asked for");
        return;
    }
    r->open = false;
    t->cb.done(t->cb.user, r->id, t->now);
}

static void on_abort(void *user, uint64_t stream, uint64_t error_code) {
    quic_transport *t = user;
    quic_request *r = find_stream(t, stream);
    if (!r)
        return;
    char message[64];
    snprintf(message, sizeof message, "the server reset the stream (HTTP/3 error 0x%" PRIx64 ")", error_code);
    request_failed(t, r, message);
}

static const h3_callbacks *h3_callbacks_for(quic_transport *t, h3_callbacks *out) {
    *out = (h3_callbacks){.user = t, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort};
    return out;
}

/* ---- events ---- */

/* Index among the configured paths, or path_count. */
static size_t to_config(const quic_transport *t, int index) {
    size_t i = 0;
    while (i < t->path_count && t->to_transport[i] != index)
        i++;
    return i;
}

static void tell_closed(quic_transport *t, const char *message) {
    t->over = true;
    t->cb.closed(t->cb.user, message, t->now);
}

static void on_closed(quic_transport *t, const xl_event *event) {
    char reason[sizeof event->reason + 4] = "", message[PLAYER_ERROR_BYTES];
    if (event->reason[0])
        snprintf(reason, sizeof reason, ": %s", event->reason);
    for (char *c = reason; *c; c++) { /* the peer's words */
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    if (event->by_timeout)
        snprintf(message, sizeof message, "%s",
                 t->connected ? "nothing was heard from the server for too long" : "no answer from the server");
    else
        snprintf(message, sizeof message, "the %s closed the connection (%s error 0x%" PRIx64 "%s)",
                 event->by_peer ? "server" : "player", event->application_error ? "HTTP/3" : "QUIC", event->error_code,
                 reason);
    tell_closed(t, message);
}

static void on_event(quic_transport *t, const xl_event *event) {
    h3_on_event(t->h3, event, t->now);
    size_t path = to_config(t, event->path);
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        t->connected = true;
        t->cb.connected(t->cb.user, t->now);
        break;
    case XL_EVENT_PATH:
        if (path < t->path_count)
            t->cb.path(t->cb.user, path, xl_path_state_name(event->path_state), t->now);
        break;
    case XL_EVENT_MIGRATED: {
        size_t from = to_config(t, event->from_path);
        if (path < t->path_count && from < t->path_count)
            t->cb.migrated(t->cb.user, from, path, t->now);
        break;
    }
    case XL_EVENT_CLOSED:
        on_closed(t, event);
        break;
    case XL_EVENT_STREAM_READABLE:
    case XL_EVENT_STREAM_WRITABLE:
    case XL_EVENT_STREAM_RESET:
    case XL_EVENT_STREAM_STOPPED:
    case XL_EVENT_STREAM_DONE:
        break;
    }
}

/* Nobody listens there: known at once, where the network says so. */
static bool was_refused(const quic_transport *t) {
    xl_udp_stats stats;
    xl_udp_get_stats(t->udp, &stats);
    return !t->connected && stats.refused > 0 && stats.datagrams_received == 0;
}

static void quic_step(player_transport *handle, uint64_t now) {
    quic_transport *t = from_handle(handle);
    if (t->over)
        return;
    t->now = now;
    xl_udp_receive(t->udp, t->endpoint, now);
    if (xl_endpoint_next_timeout(t->endpoint) <= now)
        xl_endpoint_handle_timeout(t->endpoint, now);
    xl_event event;
    while (!t->over && xl_endpoint_poll_event(t->endpoint, &event))
        on_event(t, &event);
    if (!t->over && was_refused(t))
        tell_closed(t, "connection refused");
    if (t->over)
        return;
    h3_pump(t->h3, now);
    xl_udp_flush(t->udp, t->endpoint, now);
}

static uint64_t quic_next_timeout(const player_transport *handle) {
    const quic_transport *t = (const quic_transport *)handle;
    return t->over ? XL_NEVER : xl_endpoint_next_timeout(t->endpoint);
}

static void quic_set_qoe(player_transport *handle, const xl_qoe *qoe, uint64_t now) {
    quic_transport *t = from_handle(handle);
    if (!t->over)
        xl_connection_set_qoe(t->connection, qoe, now);
}

/* ---- facts ---- */

static void quic_path_stats(player_transport *handle, player_path_stats *stats) {
    quic_transport *t = from_handle(handle);
    memset(stats, 0, t->path_count * sizeof *stats);
    xl_connection_stats all;
    xl_connection_get_stats(t->connection, &all);
    for (size_t i = 0; i < all.path_count; i++) {
        xl_path_stats path;
        if (xl_connection_path_stats(t->connection, i, &path) != 0)
            continue;
        size_t at = to_config(t, path.index);
        if (at < t->path_count) {
            stats[at].bytes_sent += path.bytes_sent;
            stats[at].bytes_received += path.bytes_received;
            stats[at].srtt_us = path.srtt_us;
        }
    }
}

static json_t *quic_summary(player_transport *handle) {
    quic_transport *t = from_handle(handle);
    xl_connection_stats all;
    xl_udp_stats udp;
    xl_connection_get_stats(t->connection, &all);
    xl_udp_get_stats(t->udp, &udp);
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "multipath", (int)all.multipath, "migrations",
                     (json_int_t)all.migrations, "stream_bytes_received", (json_int_t)all.stream_bytes_received,
                     "datagrams_received", (json_int_t)all.datagrams_received, "datagrams_dropped",
                     (json_int_t)all.datagrams_dropped, "udp", "datagrams_sent", (json_int_t)udp.datagrams_sent,
                     "datagrams_received", (json_int_t)udp.datagrams_received, "kept", (json_int_t)udp.kept, "dark",
                     (json_int_t)udp.dark);
}

const player_transport_ops player_transport_quic = {
    .name = "quic",
    .schemes = quic_scheme_names,
    .create = quic_create,
    .request = quic_request_range,
    .cancel = quic_cancel,
    .step = quic_step,
    .next_timeout = quic_next_timeout,
    .set_qoe = quic_set_qoe,
    .path_stats = quic_path_stats,
    .summary = quic_summary,
    .close = quic_close,
};
