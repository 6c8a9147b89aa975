/* A relay over libxlink: the control for relays of other stacks. What a relay costs is the difference between this one
 * and the same scheme without a relay. Marks of video frames and the QoE signal do not pass a relay. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/text_file.h"
#include "peers/relay/udp.h"
#include "schemes/quic_settings.h"

#define ALPN       "relay"
#define CLOCK_SKEW 86400 /* seconds that a client's clock may be behind for the self-signed certificate */
#define CANCELLED  1     /* application error code of a stream that was given up */

typedef struct {               /* the stream of a local connection */
    xl_connection *connection; /* NULL: waits for the handshake */
    uint64_t id;
} item;

typedef struct {
    relay_udp u;
    quic_settings settings;
    xl_endpoint *endpoint;
    xl_credentials *credentials;
    xl_connection *connection; /* the client's */
    bool is_connected;
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

/* Local bytes into the stream. May end it. */
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

/* Bytes of the stream to the local end. May end it. */
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
        return; /* no credit for streams yet: step() tries again */
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

static void connect_client(stack *t) {
    const relay_options *o = &t->u.options;
    const uint64_t now = *relay_clock(t->u.relay);
    const size_t count = quic_settings_use_all_paths(&t->settings) ? o->path_count : 1;
    if (!relay_udp_bind(&t->u, count))
        return;
    t->connection = xl_endpoint_connect(t->endpoint, "localhost", &t->u.local[0], &o->server, XL_TECH_UNKNOWN, now);
    for (size_t k = 1; t->connection && k < count; k++)
        (void)xl_connection_add_path(t->connection, &t->u.local[k], &o->server, XL_TECH_UNKNOWN, now);
    if (!t->connection)
        relay_close(t->u.relay, "libxlink cannot connect", true);
}

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    if (!t->connection)
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

/* The stream is given up in both directions. */
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

/* A new stream of the client. */
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

static void on_closed(stack *t, const xl_event *event) {
    for (relay_stream *local = relay_first(t->u.relay), *next; local; local = next) {
        next = relay_next(local);
        if (((item *)relay_state(local))->connection == event->connection || !t->u.options.is_server)
            relay_abort(local);
    }
    if (t->u.options.is_server)
        xl_connection_free(event->connection);
    else
        relay_close(t->u.relay, event->reason[0] ? event->reason : "the connection has ended", true);
}

static void on_event(stack *t, const xl_event *event) {
    relay_stream *local = stream_of(t, event->connection, event->stream_id);
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        t->is_connected = true;
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
    if (xl_endpoint_next_timeout(t->endpoint) <= now)
        xl_endpoint_handle_timeout(t->endpoint, now);
    while (xl_endpoint_poll_event(t->endpoint, &event))
        on_event(t, &event);
    if (t->is_connected)
        start_streams(t);
    xl_udp_flush(t->u.udp, t->endpoint, now);
}

static uint64_t next_timeout(void *user) {
    return xl_endpoint_next_timeout(((stack *)user)->endpoint);
}

static void path(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    xl_path_stats stats;
    if (!t->connection || xl_connection_path_stats(t->connection, k, &stats) != XL_OK)
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
    const char *problem = quic_settings_problem(&t->settings);
    if (problem) {
        snprintf(error, RELAY_ERROR_BYTES, "%s.", problem);
        return false;
    }
    xl_config config;
    xl_config_init(&config);
    config.is_server = t->u.options.is_server;
    config.alpn = ALPN;
    quic_settings_configure(&t->settings, &config);
    if (xl_udp_random_key(config.random_key) != 0)
        return relay_refuse(error, "The system has no random numbers.");
    if (!make_credentials(t, &config, error))
        return false;
    config.credentials = t->credentials;
    int rv = 0;
    t->endpoint = xl_endpoint_new(&config, *relay_clock(t->u.relay), &rv);
    return t->endpoint || relay_refuse(error, "The transport refuses the settings.");
}

static void close_connection(void *user) {
    stack *t = user;
    const uint64_t now = *relay_clock(t->u.relay);
    if (!t->connection)
        return;
    xl_connection_close(t->connection, 0, "", now);
    xl_udp_flush(t->u.udp, t->endpoint, now);
}

static void destroy(void *user) {
    stack *t = user;
    if (t->endpoint)
        xl_endpoint_free(t->endpoint);
    if (t->credentials)
        xl_credentials_free(t->credentials);
}

int main(int argc, char **argv) {
    static stack t;
    static const relay_program program = {.name = "xlink-relay",
                                          .ops = {.state_bytes = sizeof(item),
                                                  .open = on_open,
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
