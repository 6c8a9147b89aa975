/* A relay over libxlink, the control for relays of other stacks: a relay's overhead is the difference between this one
 * and the same scheme without a relay. A relay does not forward marks of video frames and the QoE signal. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/text_file.h"
#include "peers/relay/udp.h"
#include "schemes/quic_settings.h"
#include "xlink/log_files.h"

#define ALPN       "relay"
#define CLOCK_SKEW 86400   /* s by which a client's clock may be slow, for the self-signed certificate */
#define CANCELLED  1       /* application error code of a cancelled stream */
#define APART_US   1000000 /* from a failed attempt to connect to the next one */

typedef struct {               /* stream of a local connection */
    xl_connection *connection; /* NULL: waits for the handshake */
    uint64_t id;
} item;

/* The client connects as the player does (player/http3_client.c): without an answer, it tries another path too. The
 * first connection whose handshake completes carries the streams; the others are closed. */
typedef struct {
    relay_udp u;
    quic_settings settings;
    xl_endpoint *endpoint;
    xl_credentials *credentials;
    xl_log_files *logs;
    xl_connection *attempts[RELAY_MAX_PATHS]; /* by path of the handshake; NULL: none running */
    size_t last_path;                         /* path of the newest attempt */
    uint64_t again_at;                        /* start of the next attempt; XL_NEVER: none */
    xl_connection *connection;                /* client: the connection in use; before, the newest attempt */
    bool has_begun, is_connected;
} stack;

/* ---- streams ---- */

static relay_stream *stream_of(const stack *t, const xl_connection *connection, uint64_t id) {
    relay_stream *local = relay_first(t->u.relay);
    for (; local; local = relay_next(local)) {
        const item *i = relay_state(local);
        if (i->connection == connection && i->id == id)
            break;
    }
    return local;
}

/* Sends local bytes on the stream. May end it. */
static void send_bytes(relay_stream *local) {
    const item *i = relay_state(local);
    const uint8_t *data;
    bool fin = false;
    const size_t len = relay_peek(local, &data, &fin);
    if (!i->connection || (len == 0 && !fin))
        return;
    const ssize_t taken = xl_stream_send(i->connection, i->id, data, len, fin, NULL);
    if (taken >= 0)
        relay_consume(local, (size_t)taken, fin && (size_t)taken == len);
}

static size_t space(void *user, relay_stream *local, uint8_t **at) {
    const item *i = relay_state(local);
    (void)user;
    const ssize_t n = i->connection ? xl_stream_reserve(i->connection, i->id, RELAY_BUFFER_BYTES, at) : 0;
    return n > 0 ? (size_t)n : 0;
}

/* May end it. */
static void filled(void *user, relay_stream *local, size_t len, bool fin) {
    const item *i = relay_state(local);
    (void)user;
    if (xl_stream_commit(i->connection, i->id, len, fin, NULL) == XL_OK)
        relay_consume(local, 0, fin);
}

/* Delivers received bytes to the local end. May end the stream. */
static void deliver_bytes(relay_stream *local) {
    const item *i = relay_state(local);
    uint8_t buf[16384];
    bool fin = false;
    size_t room;
    ssize_t n = 0;
    while (!fin && (room = relay_room(local)) > 0) {
        n = xl_stream_read(i->connection, i->id, buf, room < sizeof buf ? room : sizeof buf, &fin);
        if (n <= 0)
            break;
        relay_push(local, buf, (size_t)n);
    }
    if (fin)
        relay_finish(local);
}

static void start_stream(stack *t, relay_stream *local) {
    item *i = relay_state(local);
    if (xl_stream_open(t->connection, true, &i->id) != XL_OK)
        return; /* stream limit reached: step() tries again */
    i->connection = t->connection;
    send_bytes(local);
}

static void start_streams(stack *t) {
    for (relay_stream *local = relay_first(t->u.relay), *next; local; local = next) {
        next = relay_next(local);
        if (!((item *)relay_state(local))->connection)
            start_stream(t, local);
    }
}

/* ---- connecting ---- */

/* Starts a handshake on path `first`. Adds the other paths at once, so that multipath begins with the connection. */
static void connect_on(stack *t, size_t first) {
    const relay_options *o = &t->u.options;
    const quic_settings *s = &t->settings;
    const uint64_t now = *relay_clock(t->u.relay);
    xl_connection *c =
        xl_endpoint_connect(t->endpoint, "localhost", &t->u.local[first], &o->server, XL_TECH_UNKNOWN, now);
    if (!c) {
        relay_close(t->u.relay, "libxlink cannot connect", true);
        return;
    }
    for (size_t k = 0; quic_settings_use_all_paths(s) && k < o->path_count; k++)
        if (k != first)
            (void)xl_connection_add_path(c, &t->u.local[k], &o->server, XL_TECH_UNKNOWN, now);
    t->attempts[first] = t->connection = c;
    t->last_path = first;
    const bool races = s->race_us > 0 && first + 1 < o->path_count;
    t->again_at = races ? now + s->race_us : s->reconnect == QUIC_RECONNECT_OFF ? XL_NEVER : now + s->reconnect_us;
}

static void connect_client(stack *t) {
    t->has_begun = true;
    if (relay_udp_bind(&t->u, t->u.options.path_count))
        connect_on(t, 0);
}

static void connect_again(stack *t, uint64_t now) {
    const size_t count = t->u.options.path_count;
    if (!t->has_begun || t->is_connected || now < t->again_at)
        return;
    for (size_t step = 1; step <= count; step++) {
        const size_t k = t->settings.reconnect == QUIC_RECONNECT_SAME ? 0 : (t->last_path + step) % count;
        if (!t->attempts[k]) {
            connect_on(t, k);
            return;
        }
    }
    t->again_at = now + APART_US;
}

static void on_connected(stack *t, xl_connection *winner) {
    if (t->is_connected)
        return;
    t->is_connected = true;
    t->connection = winner;
    t->again_at = XL_NEVER;
    for (size_t k = 0; k < RELAY_MAX_PATHS; k++)
        if (t->attempts[k] && t->attempts[k] != winner)
            xl_connection_close(t->attempts[k], 0, "another path was faster", *relay_clock(t->u.relay));
}

/* Whether another attempt may succeed, because nothing was received. */
static bool is_worth_another(const stack *t, const xl_event *closed) {
    return t->settings.reconnect != QUIC_RECONNECT_OFF &&
           (closed->close_reason == XL_CLOSE_HANDSHAKE_TIMEOUT || closed->close_reason == XL_CLOSE_IDLE_TIMEOUT);
}

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    if (!t->has_begun)
        connect_client(t);
    else if (t->is_connected)
        start_stream(t, local);
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    send_bytes(local);
}

static void on_writable(void *user, relay_stream *local) {
    (void)user;
    if (((item *)relay_state(local))->connection)
        deliver_bytes(local);
}

/* Cancels a stream in both directions. */
static void cancel(xl_connection *connection, uint64_t id) {
    (void)xl_stream_reset(connection, id, CANCELLED);
    (void)xl_stream_stop(connection, id, CANCELLED);
}

static void on_gone(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->connection)
        cancel(i->connection, i->id);
}

/* ---- the connection ---- */

/* Connects a new stream of the client to the upstream server. */
static void take_stream(stack *t, const xl_event *event) {
    relay_stream *local = relay_connect(t->u.relay);
    if (!local) {
        cancel(event->connection, event->stream_id);
        return;
    }
    *(item *)relay_state(local) = (item){event->connection, event->stream_id};
    deliver_bytes(local);
}

static void abort_stream(relay_stream *local) {
    const item *i = relay_state(local);
    if (i->connection)
        (void)xl_stream_stop(i->connection, i->id, CANCELLED);
    relay_abort(local);
}

static void abort_streams(stack *t, const xl_connection *connection) {
    for (relay_stream *local = relay_first(t->u.relay), *next; local; local = next) {
        next = relay_next(local);
        if (((item *)relay_state(local))->connection == connection || !t->u.options.is_server)
            relay_abort(local);
    }
}

/* Frees a closed connection of the client. */
static void forget(stack *t, xl_connection *attempt) {
    for (size_t k = 0; k < RELAY_MAX_PATHS; k++)
        if (t->attempts[k] == attempt)
            t->attempts[k] = NULL;
    if (t->connection == attempt)
        t->connection = NULL;
    xl_connection_free(attempt);
}

static bool has_attempt(const stack *t) {
    for (size_t k = 0; k < RELAY_MAX_PATHS; k++)
        if (t->attempts[k])
            return true;
    return false;
}

/* Whether the client continues after the end of one of its connections. */
static bool is_survived(stack *t, const xl_event *closed) {
    if (t->is_connected)
        return t->connection != NULL;
    const uint64_t soon = *relay_clock(t->u.relay) + APART_US;
    const bool tries_again = is_worth_another(t, closed);
    if (tries_again && t->again_at > soon)
        t->again_at = soon;
    return tries_again || has_attempt(t);
}

static void on_client_closed(stack *t, const xl_event *event) {
    forget(t, event->connection);
    if (is_survived(t, event))
        return;
    abort_streams(t, NULL);
    relay_close(t->u.relay, event->reason[0] ? event->reason : "the connection has ended", true);
}

static void on_closed(stack *t, const xl_event *event) {
    if (!t->u.options.is_server) {
        on_client_closed(t, event);
        return;
    }
    abort_streams(t, event->connection);
    xl_connection_free(event->connection);
}

static void on_event(stack *t, const xl_event *event) {
    relay_stream *local = stream_of(t, event->connection, event->stream_id);
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        on_connected(t, event->connection);
        break;
    case XL_EVENT_STREAM_READABLE:
        if (local)
            deliver_bytes(local);
        else if (t->u.options.is_server)
            take_stream(t, event);
        break;
    case XL_EVENT_STREAM_WRITABLE:
        if (local)
            send_bytes(local);
        break;
    case XL_EVENT_STREAM_RESET:
    case XL_EVENT_STREAM_STOPPED:
        if (local)
            abort_stream(local);
        break;
    case XL_EVENT_CLOSED:
        on_closed(t, event);
        break;
    default:
        break;
    }
}

static void step(void *user, uint64_t now) {
    stack *t = user;
    xl_event event;
    xl_udp_receive(t->u.udp, t->endpoint, now);
    xl_endpoint_handle_timeout(t->endpoint, now);
    while (xl_endpoint_poll_event(t->endpoint, &event))
        on_event(t, &event);
    connect_again(t, now);
    if (t->is_connected)
        start_streams(t);
    xl_udp_flush(t->u.udp, t->endpoint, now);
}

static uint64_t next_timeout(void *user) {
    const stack *t = user;
    const uint64_t at = xl_endpoint_next_timeout(t->endpoint);
    return t->has_begun && !t->is_connected && t->again_at < at ? t->again_at : at;
}

/* Finds the path by its address, because the connection's path 0 is that of its handshake. */
static bool stats_of(const stack *t, size_t k, xl_path_stats *out) {
    for (size_t i = 0; t->connection && xl_connection_path_stats(t->connection, i, out) == XL_OK; i++)
        if (xl_addr_equal(&out->local, &t->u.local[k]))
            return true;
    return false;
}

static void path(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    xl_path_stats stats;
    if (!stats_of(t, k, &stats))
        return;
    *out = (relay_path_facts){.state = xl_path_state_name(stats.state),
                              .bytes_sent = stats.bytes_sent,
                              .bytes_received = stats.bytes_received,
                              .srtt_us = stats.srtt_us};
}

/* ---- the program ---- */

static bool make_credentials(stack *t, const xl_config *config, char *error) {
    const relay_options *o = &t->u.options;
    if (!o->is_server || !o->certificate_file) {
        t->credentials = o->is_server ? xl_credentials_self_signed("localhost", config->random_key,
                                                                   (uint64_t)time(NULL) - CLOCK_SKEW)
                                      : xl_credentials_client(NULL);
        return t->credentials || relay_refuse(error, "There is no memory.");
    }
    char *certificate = text_file_read(o->certificate_file, error, RELAY_ERROR_BYTES);
    char *key = certificate && o->key_file ? text_file_read(o->key_file, error, RELAY_ERROR_BYTES) : NULL;
    if (key && !(t->credentials = xl_credentials_server(certificate, key)))
        snprintf(error, RELAY_ERROR_BYTES, "%.80s and %.80s are not a certificate and its key in PEM form.",
                 o->certificate_file, o->key_file);
    else if (!o->key_file)
        snprintf(error, RELAY_ERROR_BYTES, "--certificate needs --key.");
    free(certificate);
    free(key);
    return t->credentials != NULL;
}

static bool start(void *user, char *error) {
    stack *t = user;
    const char *problem = quic_settings_problem(&t->settings, false);
    if (problem)
        return error_set(error, RELAY_ERROR_BYTES, "%s.", problem);
    xl_config config;
    xl_config_init(&config);
    config.is_server = t->u.options.is_server;
    config.alpn = ALPN;
    quic_settings_configure(&t->settings, &config);
    /* Like the player's: an unanswered attempt continues beside later ones. */
    if (!config.is_server && t->settings.reconnect != QUIC_RECONNECT_OFF)
        config.limits.handshake_timeout_us = config.limits.idle_timeout_us;
    if (xl_udp_random_key(config.random_key) != 0)
        return relay_refuse(error, "The system has no random numbers.");
    if (!make_credentials(t, &config, error))
        return false;
    config.credentials = t->credentials;
    t->logs = xl_log_files_open(&(xl_log_options){.keylog_file = getenv("SSLKEYLOGFILE")}, error, RELAY_ERROR_BYTES);
    if (!t->logs)
        return false;
    config.log = xl_log_files_log(t->logs);
    int rv = 0;
    t->endpoint = xl_endpoint_new(&config, *relay_clock(t->u.relay), &rv);
    return t->endpoint || relay_refuse(error, "The transport refuses the settings.");
}

static void close_connection(void *user) {
    stack *t = user;
    const uint64_t now = *relay_clock(t->u.relay);
    for (size_t k = 0; k < RELAY_MAX_PATHS; k++)
        if (t->attempts[k])
            xl_connection_close(t->attempts[k], 0, "", now);
    xl_udp_flush(t->u.udp, t->endpoint, now);
}

static void destroy(void *user) {
    stack *t = user;
    xl_endpoint_free(t->endpoint);
    xl_credentials_free(t->credentials);
    xl_log_files_close(t->logs);
}

int main(int argc, char **argv) {
    static stack t;
    static const relay_program program = {.name = "xlink-relay",
                                          .ops = {.state_bytes = sizeof(item),
                                                  .open = on_open,
                                                  .space = space,
                                                  .filled = filled,
                                                  .readable = on_readable,
                                                  .writable = on_writable,
                                                  .gone = on_gone,
                                                  .next_timeout = next_timeout,
                                                  .step = step,
                                                  .path = path},
                                          .start = start,
                                          .close = close_connection,
                                          .destroy = destroy};
    quic_settings_init(&t.settings);
    const relay_own_options own = {.rows = quic_setting_rows, .into = &t.settings};
    return relay_over_udp(argc, argv, &program, &own, &t, &t.u);
}
