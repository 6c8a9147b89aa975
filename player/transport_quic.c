/* HTTP/3 over libxlink, for every QUIC scheme, with one socket for each local address that the scheme uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "player/http3_client.h"
#include "player/transport.h"
#include "xlink/log_files.h"
#include "xlink/session_file.h"
#include "xlink/udp.h"

#define TRY_INTERFACE_US 1000000 /* between two checks whether an interface is back */

typedef struct {
    player_transport_callbacks cb;
    xl_log_files *logs;
    xl_credentials *credentials;
    xl_session_file *sessions; /* NULL: not kept */
    xl_udp *udp;
    http3_client *client;
    bool watching;
    const player_transport_config *config;
    int socket[PLAYER_MAX_PATHS]; /* index of each path's socket; -1: none yet */
    xl_addr bound[PLAYER_MAX_PATHS];
    bool is_gone[PLAYER_MAX_PATHS]; /* whether its interface is gone */
    uint64_t try_at;                /* next check whether one is back; XL_NEVER: none is gone */
} quic_transport;

static quic_transport *from_handle(player_transport *t) {
    return (quic_transport *)t;
}

static void flush(quic_transport *t, uint64_t now) {
    xl_udp_flush(t->udp, http3_client_endpoint(t->client), now);
}

/* ---- life ---- */

static void quic_close(player_transport *handle, uint64_t now) {
    quic_transport *t = from_handle(handle);
    if (t->client && !http3_client_is_over(t->client)) {
        http3_client_close(t->client, now);
        flush(t, now);
    }
    if (t->watching)
        t->cb.watch(t->cb.user, xl_udp_fd(t->udp), 0);
    http3_client_free(t->client);
    xl_udp_free(t->udp);
    xl_credentials_free(t->credentials);
    char error[PLAYER_ERROR_BYTES];
    if (!xl_session_file_close(t->sessions, error, sizeof error))
        fprintf(stderr, "xlink-player: %s.\n", error);
    xl_log_files_close(t->logs);
    free(t);
}

static bool keep_session(quic_transport *t, const player_transport_config *config, char *error) {
    if (!config->session_file && !config->early_data)
        return true;
    xl_set_time_of_day(xl_udp_time_of_day_ns);
    t->sessions = xl_session_file_open(config->session_file);
    const xl_sessions sessions = t->sessions ? xl_session_file_sessions(t->sessions) : (xl_sessions){0};
    bool ok = t->sessions && xl_credentials_keep_sessions(t->credentials, &sessions) == 0 &&
              (!config->early_data || xl_credentials_allow_early_data(t->credentials) == 0);
    return ok || error_set(error, PLAYER_ERROR_BYTES, "out of memory");
}

static bool make_credentials(quic_transport *t, const player_transport_config *config, char *error) {
    if (!config->insecure && !config->ca_file)
        return error_set(error, PLAYER_ERROR_BYTES,
                         "QUIC needs --ca FILE to verify the server's certificate, or --insecure");
    t->credentials = quic_settings_credentials(config->insecure ? NULL : config->ca_file, error, PLAYER_ERROR_BYTES);
    return t->credentials && keep_session(t, config, error);
}

/* Opens the path's socket if it is not open. t->bound[i] is its address. */
static bool open_socket(quic_transport *t, size_t i, char *error) {
    const player_path *path = &t->config->paths[i];
    if (t->socket[i] >= 0)
        return true;
    if (path->local.family != t->config->server.family)
        return error_set(error, PLAYER_ERROR_BYTES, "path %s and the server are not of the same address family",
                         path->name);
    t->socket[i] = xl_udp_add_socket(t->udp, &path->local, &t->bound[i]);
    if (t->socket[i] < 0) {
        char text[64];
        snprintf(error, PLAYER_ERROR_BYTES, "cannot use local address %s of path %s: %s",
                 xl_addr_format(&path->local, text, sizeof text), path->name, strerror(-t->socket[i]));
    }
    return t->socket[i] >= 0;
}

/* http3_client_opener for paths that are opened after the start. */
static bool opener(void *user, size_t i, xl_addr *local) {
    quic_transport *t = user;
    char error[PLAYER_ERROR_BYTES];
    bool ok = open_socket(t, i, error);
    *local = ok ? t->bound[i] : *local;
    return ok;
}

static bool start(quic_transport *t, const player_transport_config *config, uint64_t now, char *error) {
    t->udp = xl_udp_new();
    if (!t->udp)
        return error_set(error, PLAYER_ERROR_BYTES, "no socket driver: %s", strerror(errno));
    const xl_log_options logs = {.qlog_dir = config->qlog_dir, .keylog_file = config->keylog_file};
    t->logs = xl_log_files_open(&logs, error, PLAYER_ERROR_BYTES);
    if (!t->logs || !make_credentials(t, config, error))
        return false;
    const xl_log log = xl_log_files_log(t->logs);
    t->client = http3_client_new(config, &t->cb, t->credentials, &log, now, error);
    if (!t->client)
        return false;
    http3_client_set_opener(t->client, opener, t);
    for (size_t i = 0; i < config->path_count; i++)
        if (http3_client_opens_at_start(config, i) &&
            (!open_socket(t, i, error) || !http3_client_open_path(t->client, i, &t->bound[i], now, error)))
            return false;
    t->watching = true;
    t->cb.watch(t->cb.user, xl_udp_fd(t->udp), EPOLLIN);
    return true;
}

static player_transport *quic_create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                     uint64_t now, char *error) {
    quic_transport *t = calloc(1, sizeof *t);
    if (!t)
        return error_null(error, PLAYER_ERROR_BYTES, "out of memory");
    t->cb = *callbacks;
    t->config = config;
    t->try_at = XL_NEVER;
    for (size_t i = 0; i < PLAYER_MAX_PATHS; i++)
        t->socket[i] = -1;
    if (!start(t, config, now, error)) {
        quic_close((player_transport *)t, now);
        return NULL;
    }
    return (player_transport *)t;
}

/* ---- use ---- */

static bool quic_request(player_transport *handle, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    return http3_client_request(from_handle(handle)->client, id, first, last, now);
}

/* Whether an ICMP "port unreachable" came before any datagram: nobody listens on the server's port. */
static bool was_refused(const quic_transport *t) {
    xl_udp_stats stats;
    xl_udp_get_stats(t->udp, &stats);
    return !http3_client_is_connected(t->client) && stats.refused > 0 && stats.datagrams_received == 0;
}

/* Abandons a path whose interface is gone. When the address is back, adds it as a new path. */
static void watch_interfaces(quic_transport *t, uint64_t now) {
    bool any = false, due = now >= t->try_at;
    for (size_t i = 0; i < t->config->path_count; i++) {
        bool refused = xl_udp_is_refused(t->udp, t->socket[i]);
        if (refused && (due || !t->is_gone[i]) && xl_udp_try_socket(t->udp, t->socket[i], &t->config->server))
            refused = false;
        if (refused && !t->is_gone[i])
            http3_client_remove_path(t->client, i, now);
        else if (!refused && t->is_gone[i])
            http3_client_add_path(t->client, i, now);
        t->is_gone[i] = refused;
        any |= refused;
    }
    if (!any)
        t->try_at = XL_NEVER;
    else if (due || t->try_at == XL_NEVER)
        t->try_at = now + TRY_INTERFACE_US;
}

static void quic_step(player_transport *handle, uint64_t now) {
    quic_transport *t = from_handle(handle);
    if (http3_client_is_over(t->client))
        return;
    xl_udp_receive(t->udp, http3_client_endpoint(t->client), now);
    http3_client_process(t->client, now);
    if (was_refused(t))
        http3_client_fail(t->client, "connection refused", now);
    if (http3_client_is_over(t->client))
        return;
    flush(t, now);
    watch_interfaces(t, now);
    flush(t, now); /* packets due to the change of paths */
}

static uint64_t quic_next_timeout(const player_transport *handle) {
    const quic_transport *t = (const quic_transport *)handle;
    uint64_t at = http3_client_next_timeout(t->client);
    return at != XL_NEVER && t->try_at < at ? t->try_at : at;
}

static void quic_path_stats(player_transport *handle, player_path_stats *stats) {
    http3_client_path_stats(from_handle(handle)->client, stats);
}

static json_t *quic_summary(player_transport *handle) {
    const quic_transport *t = from_handle(handle);
    xl_udp_stats udp;
    xl_udp_get_stats(t->udp, &udp);
    json_t *summary = http3_client_summary(t->client);
    json_object_set_new(summary, "udp",
                        json_pack("{s:I, s:I, s:I, s:I}", "datagrams_sent", (json_int_t)udp.datagrams_sent,
                                  "datagrams_received", (json_int_t)udp.datagrams_received, "kept",
                                  (json_int_t)udp.kept, "dark", (json_int_t)udp.dark));
    return summary;
}

const player_transport_ops player_transport_quic = {
    .name = "quic",
    .has_schemes = true,
    .create = quic_create,
    .request = quic_request,
    .step = quic_step,
    .next_timeout = quic_next_timeout,
    .path_stats = quic_path_stats,
    .summary = quic_summary,
    .close = quic_close,
};
