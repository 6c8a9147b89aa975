/* A relay over picoquic: multipath QUIC (RFC 10069) over all paths. docs/reference/stacks.md describes relays.
 *
 * picoquic does no I/O: it takes and returns datagrams, and returns when to call it again. It passes received bytes to
 * a callback, which cannot refuse them. Bytes for which the relay's buffer has no room are held here; the stream's flow
 * control window limits them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <picoquic.h>

#include "base/net.h"
#include "peers/relay/udp.h"

#define ALPN              "relay"
#define CANCELLED         1                 /* application error code of a cancelled stream */
#define STREAM_WINDOW     ((size_t)6 << 20) /* the same as libxlink's */
#define CONNECTION_WINDOW (UINT64_C(15) << 20)
#define IDLE_MS           UINT64_C(120000)
#define UDP_PAYLOAD_BYTES 1452
#define MAX_CONNECTIONS   64
#define PROBE_US          UINT64_C(1000000) /* until a path that picoquic has closed is probed again */
#define BATCH_BYTES       65535

typedef struct {                /* stream of a local connection */
    picoquic_cnx_t *connection; /* NULL: waits for the handshake */
    uint64_t id;
    uint8_t *held; /* received bytes without room in the relay: held[from .. from + len) */
    size_t held_from, held_len, held_cap;
    bool fin;
    uint64_t received, opened; /* received: bytes of the peer; opened: bytes by which the window was opened */
} item;

typedef struct {             /* client: a path */
    const char *state;       /* NULL: not open in picoquic */
    uint64_t id;             /* in picoquic */
    uint64_t sent, received; /* bytes before the path was last closed */
} path;

typedef struct {
    relay_udp u;
    const char *cc, *begin;
    picoquic_quic_t *quic;
    picoquic_cnx_t *connection; /* client */
    bool is_connected;
    path paths[RELAY_MAX_PATHS];
    uint64_t last_path_id; /* client: highest path ID so far */
    uint64_t probe_at;     /* next call of probe_paths(); XL_NEVER: none */
} stack;

static uint64_t now_of(const stack *t) {
    return *relay_clock(t->u.relay);
}

/* ---- streams ---- */

static void on_release(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->connection)
        picoquic_unlink_app_stream_ctx(i->connection, i->id);
    free(i->held);
}

/* Marks the stream as active in picoquic if bytes, or the end, wait for it. */
static void offer(item *i) {
    const uint8_t *data;
    bool fin = false;
    if (i->connection && (relay_peek(relay_stream_of(i), &data, &fin) > 0 || fin))
        (void)picoquic_mark_active_stream(i->connection, i->id, 1, i);
}

/* Provides picoquic with up to `room` bytes of the stream. May end it. */
static int provide(item *i, void *context, size_t room) {
    const uint8_t *data;
    bool fin = false;
    relay_stream *local = relay_stream_of(i);
    const size_t len = relay_peek(local, &data, &fin), n = len < room ? len : room;
    const bool is_last = fin && n == len;
    uint8_t *into = picoquic_provide_stream_data_buffer(context, n, is_last, n < len);
    if (!into && n > 0)
        return -1;
    if (n > 0)
        memcpy(into, data, n);
    relay_consume(local, n, is_last);
    return 0;
}

/* Opens the flow control window by the bytes that the local end has taken, at least a quarter at a time. */
static void open_window(item *i) {
    const uint64_t taken = i->received - i->held_len;
    if (i->fin || taken - i->opened < STREAM_WINDOW / 4)
        return;
    if (picoquic_open_flow_control(i->connection, i->id, taken + STREAM_WINDOW - i->received) == 0)
        i->opened = taken;
}

/* Passes on the end of the stream after its last byte. May end it. */
static void finish_if_over(item *i) {
    if (i->fin && i->held_len == 0)
        relay_finish(relay_stream_of(i));
}

/* Delivers held bytes to the local end. May end the stream. */
static void deliver_held(item *i) {
    const size_t n = relay_push(relay_stream_of(i), i->held + i->held_from, i->held_len);
    i->held_from += n;
    i->held_len -= n;
    open_window(i);
    finish_if_over(i);
}

static bool hold(item *i, const uint8_t *data, size_t len) {
    if (len > 0 && i->held_from > 0) {
        memmove(i->held, i->held + i->held_from, i->held_len);
        i->held_from = 0;
    }
    if (i->held_len + len > i->held_cap) {
        const size_t cap = 2 * (i->held_len + len);
        uint8_t *grown = realloc(i->held, cap);
        if (!grown)
            return false;
        i->held = grown;
        i->held_cap = cap;
    }
    if (len > 0)
        memcpy(i->held + i->held_len, data, len);
    i->held_len += len;
    return true;
}

/* Delivers received bytes to the local end, and holds those without room. May end the stream. False: out of memory. */
static bool deliver(item *i, const uint8_t *data, size_t len, bool fin) {
    const size_t n = i->held_len == 0 ? relay_push(relay_stream_of(i), data, len) : 0;
    i->received += len;
    i->fin |= fin;
    if (n < len && !hold(i, data + n, len - n))
        return false;
    open_window(i);
    finish_if_over(i);
    return true;
}

static void adopt(item *i, picoquic_cnx_t *connection, uint64_t id) {
    i->connection = connection;
    i->id = id;
    (void)picoquic_set_app_stream_ctx(connection, id, i);
    (void)picoquic_set_app_flow_control(connection, id, 1);
}

/* Client: opens a stream. Bytes may wait for it already. */
static void start_stream(item *i, picoquic_cnx_t *connection) {
    const uint64_t id = picoquic_get_next_local_stream_id(connection, 0);
    (void)picoquic_mark_active_stream(connection, id, 1, i);
    adopt(i, connection, id);
}

static void start_streams(stack *t) {
    for (relay_stream *local = relay_first(t->u.relay); local; local = relay_next(local))
        if (!((item *)relay_state(local))->connection)
            start_stream(relay_state(local), t->connection);
}

/* Connects a new stream of the client to the upstream server. */
static item *take_stream(stack *t, picoquic_cnx_t *connection, uint64_t id) {
    relay_stream *local = relay_connect(t->u.relay);
    if (local)
        adopt(relay_state(local), connection, id);
    else
        (void)picoquic_discard_stream(connection, id, CANCELLED);
    return local ? relay_state(local) : NULL;
}

static void connect_client(stack *t);

/* Whether the client opens streams and paths before its handshake is confirmed. */
static bool is_early(const stack *t) {
    return !t->u.options.is_server && strcmp(t->begin, "complete") == 0;
}

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    if (!t->connection)
        connect_client(t);
    else if (t->is_connected)
        start_stream(relay_state(local), t->connection);
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    offer(relay_state(local));
}

static void on_writable(void *user, relay_stream *local) {
    item *i = relay_state(local);
    (void)user;
    if (i->connection)
        deliver_held(i);
}

static void on_gone(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->connection)
        (void)picoquic_discard_stream(i->connection, i->id, CANCELLED);
}

/* ---- the client's paths ---- */

static bool begin_connection(stack *t) {
    const picoquic_connection_id_t none = {0};
    struct sockaddr_storage to, from;
    (void)net_to_sockaddr(&t->u.options.server, &to);
    (void)net_to_sockaddr(&t->u.local[0], &from);
    t->connection =
        picoquic_create_cnx(t->quic, none, none, (struct sockaddr *)&to, now_of(t), 0, "localhost", ALPN, 1);
    if (!t->connection)
        return false;
    (void)picoquic_set_local_addr(t->connection, (struct sockaddr *)&from);
    t->paths[0].state = "active";
    int is_allowed = 0;
    if (is_early(t))
        (void)picoquic_subscribe_new_path_allowed(t->connection, &is_allowed);
    return picoquic_start_client_cnx(t->connection) == 0;
}

static void connect_client(stack *t) {
    if (relay_udp_bind(&t->u, t->u.options.path_count) && !begin_connection(t))
        relay_close(t->u.relay, "picoquic cannot connect", true);
}

/* Finds picoquic's ID of the newest path with this local address. */
static uint64_t find_path_id(stack *t, const xl_addr *local) {
    for (uint64_t id = t->last_path_id + 1; id < t->last_path_id + 1 + RELAY_MAX_PATHS; id++) {
        struct sockaddr_storage sa = {0};
        xl_addr is = {0};
        if (picoquic_get_path_addr(t->connection, id, 1, &sa) == 0 && net_from_sockaddr((struct sockaddr *)&sa, &is) &&
            xl_addr_equal(&is, local))
            return t->last_path_id = id;
    }
    return UINT64_MAX;
}

/* Opens the missing paths. If picoquic cannot open one now, tries again later. */
static void probe_paths(stack *t, uint64_t now) {
    struct sockaddr_storage to, from;
    (void)net_to_sockaddr(&t->u.options.server, &to);
    t->probe_at = XL_NEVER;
    for (size_t k = 0; k < t->u.options.path_count; k++) {
        path *p = &t->paths[k];
        if (p->state)
            continue;
        (void)net_to_sockaddr(&t->u.local[k], &from);
        int is_allowed = 0;
        if (picoquic_probe_new_path_ex(t->connection, (struct sockaddr *)&to, (struct sockaddr *)&from, 0, now, 0) !=
            0) {
            (void)picoquic_subscribe_new_path_allowed(t->connection, &is_allowed);
            t->probe_at = now + PROBE_US;
            return;
        }
        p->id = find_path_id(t, &t->u.local[k]);
        p->state = "probing";
    }
}

static path *path_of(stack *t, uint64_t id) {
    for (size_t k = 0; k < t->u.options.path_count; k++)
        if (t->paths[k].state && t->paths[k].id == id)
            return &t->paths[k];
    return NULL;
}

static void on_path(stack *t, uint64_t id, picoquic_call_back_event_t event) {
    path *p = path_of(t, id);
    picoquic_path_quality_t quality = {0};
    if (!p || t->u.options.is_server)
        return;
    if (event == picoquic_callback_path_available)
        p->state = "active";
    else if (event == picoquic_callback_path_suspended)
        p->state = "suspended";
    else { /* deleted */
        if (picoquic_get_path_quality(t->connection, id, &quality) == 0) {
            p->sent += quality.bytes_sent;
            p->received += quality.bytes_received;
        }
        p->state = NULL;
        t->probe_at = now_of(t) + PROBE_US;
    }
}

static void on_path_facts(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    const path *p = &t->paths[k];
    picoquic_path_quality_t quality = {0};
    if (!p->state && p->sent == 0)
        return;
    if (p->state && picoquic_get_path_quality(t->connection, p->id, &quality) != 0)
        return;
    *out = (relay_path_facts){.state = p->state ? p->state : "closed",
                              .bytes_sent = p->sent + quality.bytes_sent,
                              .bytes_received = p->received + quality.bytes_received,
                              .srtt_us = quality.rtt_sample > 0 ? quality.rtt : 0};
}

/* ---- the connection ---- */

/* Client: opens streams and paths. */
static void on_connected(stack *t) {
    if (t->is_connected)
        return;
    t->is_connected = true;
    start_streams(t);
    t->probe_at = now_of(t);
}

static void on_closed(stack *t, picoquic_cnx_t *connection) {
    char reason[96];
    const uint64_t local = picoquic_get_local_error(connection), remote = picoquic_get_remote_error(connection);
    for (relay_stream *s = relay_first(t->u.relay), *next; s; s = next) {
        next = relay_next(s);
        if (((item *)relay_state(s))->connection == connection || !t->u.options.is_server)
            relay_abort(s);
    }
    if (t->u.options.is_server)
        return;
    snprintf(reason, sizeof reason, "picoquic has closed the connection: error 0x%" PRIx64 ", of the peer 0x%" PRIx64,
             local, remote);
    relay_close(t->u.relay, local || remote ? reason : "the connection has ended", true);
}

/* Handles a stream that the peer has cancelled. */
static void on_reset(item *i) {
    (void)picoquic_discard_stream(i->connection, i->id, CANCELLED);
    relay_abort(relay_stream_of(i));
}

static int on_event(picoquic_cnx_t *connection, uint64_t id, uint8_t *bytes, size_t len,
                    picoquic_call_back_event_t event, void *user, void *of_stream) {
    stack *t = user;
    item *i = of_stream;
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if (!i && t->u.options.is_server)
            i = take_stream(t, connection, id);
        return !i || deliver(i, bytes, len, event == picoquic_callback_stream_fin) ? 0 : -1;
    case picoquic_callback_prepare_to_send:
        return i ? provide(i, bytes, len) : 0;
    case picoquic_callback_stream_reset:
    case picoquic_callback_stop_sending:
        if (i)
            on_reset(i);
        return 0;
    case picoquic_callback_almost_ready: /* the handshake is complete */
        if (is_early(t))
            on_connected(t);
        return 0;
    case picoquic_callback_ready: /* the handshake is confirmed */
        if (!t->u.options.is_server)
            on_connected(t);
        return 0;
    case picoquic_callback_path_available:
    case picoquic_callback_path_suspended:
    case picoquic_callback_path_deleted:
        on_path(t, id, event);
        return 0;
    case picoquic_callback_next_path_allowed:
        t->probe_at = now_of(t);
        return 0;
    case picoquic_callback_stateless_reset:
    case picoquic_callback_close:
    case picoquic_callback_application_close:
        on_closed(t, connection);
        return 0;
    default:
        return 0;
    }
}

/* ---- datagrams ---- */

static void receive(void *user, const xl_datagram *d, uint8_t *data) {
    stack *t = user;
    struct sockaddr_storage from, to;
    (void)net_to_sockaddr(&d->remote, &from);
    (void)net_to_sockaddr(&d->local, &to);
    (void)picoquic_incoming_packet(t->quic, data, d->len, (struct sockaddr *)&from, (struct sockaddr *)&to, 0, d->ecn,
                                   now_of(t));
}

/* Sends picoquic's datagrams. */
static void transmit(stack *t, uint64_t now) {
    static uint8_t batch[BATCH_BYTES];
    while (xl_udp_has_room(t->u.udp)) {
        struct sockaddr_storage to = {0}, from = {0};
        size_t len = 0, datagram_bytes = 0;
        int interface = 0;
        picoquic_connection_id_t id;
        picoquic_cnx_t *last;
        if (picoquic_prepare_next_packet_ex(t->quic, now, batch, sizeof batch, &len, &to, &from, &interface, &id, &last,
                                            &datagram_bytes) != 0 ||
            len == 0)
            break;
        xl_datagram d = {.local = t->u.options.is_server ? t->u.options.listen : t->u.local[0]};
        (void)net_from_sockaddr((struct sockaddr *)&to, &d.remote);
        if (from.ss_family != AF_UNSPEC)
            (void)net_from_sockaddr((struct sockaddr *)&from, &d.local);
        const size_t step = datagram_bytes > 0 ? datagram_bytes : len;
        for (size_t at = 0; at < len; at += step) {
            d.len = len - at < step ? len - at : step;
            xl_udp_queue(t->u.udp, &d, batch + at);
        }
    }
    xl_udp_send(t->u.udp);
}

static void step(void *user, uint64_t now) {
    stack *t = user;
    xl_udp_receive_each(t->u.udp, receive, t);
    if (now >= t->probe_at)
        probe_paths(t, now);
    transmit(t, now);
}

static uint64_t next_timeout(void *user) {
    stack *t = user;
    const uint64_t wake = picoquic_get_next_wake_time(t->quic, now_of(t));
    return t->probe_at < wake ? t->probe_at : wake;
}

/* ---- the program ---- */

static const char *const controllers[] = {"cubic", "newreno", "bbr", "prague", "fast", NULL};
static const char *const begins[] = {"confirmed", "complete", NULL};

static const setting rows[] = {
    {"cc", SETTING_WORD, SETTING_FIELD(stack, cc), .words = controllers, .fallback = "cubic",
     .help = "Congestion controller of each path."},
    {"begin", SETTING_WORD, SETTING_FIELD(stack, begin), .words = begins, .fallback = "confirmed",
     .sides = SETTING_OF_PLAYER,
     .help = "Streams and paths of the client begin once its handshake is confirmed, or as soon as it is complete."},
    {0},
};

static bool configure(stack *t) {
    picoquic_set_default_multipath_option(t->quic, 1); /* allows a few path IDs; start() sets their number */
    picoquic_tp_t limits = *picoquic_get_default_tp(t->quic);
    limits.initial_max_stream_data_bidi_local = limits.initial_max_stream_data_bidi_remote = STREAM_WINDOW;
    limits.initial_max_data = CONNECTION_WINDOW;
    limits.max_idle_timeout = IDLE_MS;
    limits.initial_max_path_id = RELAY_MAX_PATHS;
    if (picoquic_set_default_tp(t->quic, &limits) != 0)
        return false;
    picoquic_set_max_data_control(t->quic, CONNECTION_WINDOW);
    picoquic_set_mtu_max(t->quic, UDP_PAYLOAD_BYTES + PICOQUIC_MTU_OVERHEAD(&(struct sockaddr){.sa_family = AF_INET}));
    picoquic_set_default_congestion_algorithm_by_name(t->quic, t->cc);
    picoquic_enable_path_callbacks_default(t->quic, 1);
    picoquic_disable_port_blocking(t->quic, 1);
    picoquic_set_null_verifier(t->quic);
    const char *secrets = getenv("SSLKEYLOGFILE");
    if (secrets)
        picoquic_set_key_log_file(t->quic, secrets);
    return true;
}

static bool start(void *user, char *error) {
    stack *t = user;
    const relay_options *o = &t->u.options;
    t->probe_at = XL_NEVER;
    picoquic_register_all_congestion_control_algorithms();
    t->quic = picoquic_create(MAX_CONNECTIONS, o->certificate_file, o->key_file, NULL, ALPN, on_event, t, NULL, NULL,
                              NULL, now_of(t), relay_clock(t->u.relay), NULL, NULL, 0);
    return (t->quic && configure(t)) ||
           relay_refuse(error, o->is_server ? "picoquic cannot start; are --certificate and --key PEM files?"
                                            : "picoquic cannot start.");
}

static void close_connection(void *user) {
    stack *t = user;
    if (t->connection && picoquic_close(t->connection, 0) == 0)
        transmit(t, now_of(t));
}

static void destroy(void *user) {
    stack *t = user;
    if (t->quic)
        picoquic_free(t->quic);
}

int main(int argc, char **argv) {
    static stack t;
    static const relay_program program = {.name = "picoquic relay",
                                          .version = "picoquic " PICOQUIC_VERSION,
                                          .needs_certificate = true,
                                          .ops = {.state_bytes = sizeof(item),
                                                  .open = on_open,
                                                  .readable = on_readable,
                                                  .writable = on_writable,
                                                  .gone = on_gone,
                                                  .release = on_release,
                                                  .next_timeout = next_timeout,
                                                  .step = step,
                                                  .path = on_path_facts},
                                          .start = start,
                                          .close = close_connection,
                                          .destroy = destroy};
    const relay_own_options own = {.rows = rows, .into = &t};
    t.cc = controllers[0];
    t.begin = begins[0];
    return relay_over_udp(argc, argv, &program, &own, &t, &t.u);
}
