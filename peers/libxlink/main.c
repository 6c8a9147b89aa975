/* A relay over libxlink: the control for relays of other stacks. What a relay costs is the difference between this one
 * and the same scheme without a relay. Marks of video frames and the QoE signal do not pass a relay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text_file.h"
#include "peers/relay/relay.h"
#include "schemes/quic_settings.h"
#include "xlink/udp.h"

#define PROGRAM    "xlink-relay"
#define ALPN       "relay"
#define CLOCK_SKEW 86400 /* seconds that a client's clock may be behind for the self-signed certificate */
#define CANCELLED  1     /* application error code of a stream that was given up */

typedef struct item item;
struct item { /* a local connection and its stream */
    item *next;
    relay_stream *local;
    xl_connection *connection; /* NULL: waits for the handshake */
    uint64_t id;
};

typedef struct {
    relay_options options;
    quic_settings settings;
    relay *relay;
    xl_udp *udp;
    xl_endpoint *endpoint;
    xl_credentials *credentials;
    xl_connection *connection; /* the client's */
    bool is_connected;
    item *items;
} stack;

/* ---- streams ---- */

static item *item_new(stack *t, relay_stream *local, xl_connection *connection, uint64_t id) {
    item *i = calloc(1, sizeof *i);
    if (!i)
        return NULL;
    *i = (item){.next = t->items, .local = local, .connection = connection, .id = id};
    t->items = i;
    relay_set_user(local, i);
    return i;
}

static void item_free(stack *t, item *of) {
    item **at = &t->items;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    free(of);
}

static item *item_of(stack *t, const xl_connection *connection, uint64_t id) {
    item *i = t->items;
    while (i && (i->connection != connection || i->id != id))
        i = i->next;
    return i;
}

/* Local bytes into the stream. May free the item. */
static void send_bytes(item *i) {
    const uint8_t *data;
    bool fin = false;
    const size_t len = relay_peek(i->local, &data, &fin);
    if (!i->connection || (len == 0 && !fin))
        return;
    const ssize_t taken = xl_stream_send(i->connection, i->id, data, len, fin, NULL);
    if (taken >= 0)
        relay_consume(i->local, (size_t)taken, fin && (size_t)taken == len);
}

/* Bytes of the stream to the local end. May free the item. */
static void deliver_bytes(item *i) {
    uint8_t buf[16384];
    bool fin = false;
    size_t room;
    ssize_t n = 0;
    while (!fin && (room = relay_room(i->local)) > 0) {
        n = xl_stream_read(i->connection, i->id, buf, room < sizeof buf ? room : sizeof buf, &fin);
        if (n <= 0)
            break;
        relay_push(i->local, buf, (size_t)n);
    }
    if (fin)
        relay_finish(i->local);
}

static void start_stream(stack *t, item *i) {
    if (xl_stream_open(t->connection, true, &i->id) != XL_OK)
        return; /* no credit for streams yet: step() tries again */
    i->connection = t->connection;
    send_bytes(i);
}

static bool add_paths(stack *t, uint64_t now) {
    const relay_options *o = &t->options;
    const size_t count = quic_settings_use_all_paths(&t->settings) ? o->path_count : 1;
    for (size_t k = 0; k < count; k++) {
        xl_addr bound;
        if (xl_udp_add_socket(t->udp, &o->paths[k].local, &bound) < 0)
            return false;
        if (k == 0)
            t->connection = xl_endpoint_connect(t->endpoint, "localhost", &bound, &o->server, XL_TECH_UNKNOWN, now);
        else
            (void)xl_connection_add_path(t->connection, &bound, &o->server, XL_TECH_UNKNOWN, now);
        if (!t->connection)
            return false;
    }
    return true;
}

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    item *i = item_new(t, local, NULL, 0);
    if (!i)
        relay_abort(local);
    else if (!t->connection && !add_paths(t, xl_udp_now()))
        relay_close(t->relay, "a path's local address cannot be used", true);
    else if (t->is_connected)
        start_stream(t, i);
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    send_bytes(relay_user(local));
}

static void on_writable(void *user, relay_stream *local) {
    (void)user;
    item *i = relay_user(local);
    if (i->connection)
        deliver_bytes(i);
}

static void on_gone(void *user, relay_stream *local) {
    item *i = relay_user(local);
    if (i->connection) {
        (void)xl_stream_reset(i->connection, i->id, CANCELLED);
        (void)xl_stream_stop(i->connection, i->id, CANCELLED);
    }
    item_free(user, i);
}

static void on_ended(void *user, relay_stream *local) {
    item_free(user, relay_user(local));
}

/* ---- the connection ---- */

/* A new stream of the client. */
static void take_stream(stack *t, const xl_event *event) {
    relay_stream *local = relay_connect(t->relay);
    item *i = local ? item_new(t, local, event->connection, event->stream_id) : NULL;
    if (i) {
        deliver_bytes(i);
        return;
    }
    if (local)
        relay_abort(local);
    (void)xl_stream_reset(event->connection, event->stream_id, CANCELLED);
    (void)xl_stream_stop(event->connection, event->stream_id, CANCELLED);
}

static void abort_item(stack *t, item *i) {
    if (i->connection)
        (void)xl_stream_stop(i->connection, i->id, CANCELLED);
    relay_abort(i->local);
    item_free(t, i);
}

static void on_closed(stack *t, const xl_event *event) {
    for (item *i = t->items, *next; i; i = next) {
        next = i->next;
        if (i->connection == event->connection || !t->options.is_server) {
            relay_abort(i->local);
            item_free(t, i);
        }
    }
    if (t->options.is_server)
        xl_connection_free(event->connection);
    else
        relay_close(t->relay, event->reason[0] ? event->reason : "the connection has ended", true);
}

static void on_event(stack *t, const xl_event *event) {
    item *i = item_of(t, event->connection, event->stream_id);
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        t->is_connected = true;
        break;
    case XL_EVENT_STREAM_READABLE:
        if (i)
            deliver_bytes(i);
        else if (t->options.is_server)
            take_stream(t, event);
        break;
    case XL_EVENT_STREAM_WRITABLE:
        if (i)
            send_bytes(i);
        break;
    case XL_EVENT_STREAM_RESET:
    case XL_EVENT_STREAM_STOPPED:
        if (i)
            abort_item(t, i);
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
    xl_udp_receive(t->udp, t->endpoint, now);
    if (xl_endpoint_next_timeout(t->endpoint) <= now)
        xl_endpoint_handle_timeout(t->endpoint, now);
    while (xl_endpoint_poll_event(t->endpoint, &event))
        on_event(t, &event);
    for (item *i = t->items, *next; i && t->is_connected; i = next) {
        next = i->next;
        if (!i->connection)
            start_stream(t, i);
    }
    xl_udp_flush(t->udp, t->endpoint, now);
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
    const relay_options *o = &t->options;
    if (!o->is_server || !o->certificate_file) {
        t->credentials = o->is_server ? xl_credentials_self_signed("localhost", config->random_key,
                                                                   (uint64_t)time(NULL) - CLOCK_SKEW)
                                      : xl_credentials_client(NULL);
        if (!t->credentials)
            snprintf(error, RELAY_ERROR_BYTES, "There is no memory.");
        return t->credentials != NULL;
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

static bool start(stack *t, char *error) {
    static const relay_stack ops = {.open = on_open,
                                    .readable = on_readable,
                                    .writable = on_writable,
                                    .gone = on_gone,
                                    .ended = on_ended,
                                    .next_timeout = next_timeout,
                                    .step = step,
                                    .path = path};
    xl_config config;
    xl_config_init(&config);
    config.is_server = t->options.is_server;
    config.alpn = ALPN;
    quic_settings_configure(&t->settings, &config);
    if (xl_udp_random_key(config.random_key) != 0 || !make_credentials(t, &config, error))
        return false;
    config.credentials = t->credentials;
    int rv = 0;
    t->endpoint = xl_endpoint_new(&config, xl_udp_now(), &rv);
    t->udp = xl_udp_new();
    xl_addr bound;
    if (!t->endpoint || !t->udp) {
        snprintf(error, RELAY_ERROR_BYTES, "The transport refuses the settings.");
        return false;
    }
    if (t->options.is_server && xl_udp_add_socket(t->udp, &t->options.listen, &bound) < 0) {
        snprintf(error, RELAY_ERROR_BYTES, "Cannot listen there.");
        return false;
    }
    if (t->options.is_server)
        t->options.listen = bound;
    t->relay = relay_new(&t->options, &ops, t, error);
    return t->relay && relay_watch(t->relay, xl_udp_fd(t->udp));
}

int main(int argc, char **argv) {
    static stack t;
    char error[SETTINGS_ERROR_BYTES] = "";
    quic_settings_init(&t.settings);
    const relay_own_options own = {.rows = quic_setting_rows, .into = &t.settings};
    bool ok = relay_options_read(argc, argv, &own, &t.options, error);
    if (t.options.help)
        return 0;
    const char *problem = ok ? quic_settings_problem(&t.settings) : NULL;
    if (problem)
        snprintf(error, sizeof error, "%s.", problem);
    ok = ok && !problem && start(&t, error);
    int status = ok ? relay_run(t.relay) : 2;
    if (!ok)
        fprintf(stderr, PROGRAM ": %s\n", error);
    if (t.connection && ok) {
        xl_connection_close(t.connection, 0, "", xl_udp_now());
        xl_udp_flush(t.udp, t.endpoint, xl_udp_now());
    }
    relay_free(t.relay);
    while (t.items)
        item_free(&t, t.items);
    if (t.endpoint)
        xl_endpoint_free(t.endpoint);
    xl_udp_free(t.udp);
    if (t.credentials)
        xl_credentials_free(t.credentials);
    return status;
}
