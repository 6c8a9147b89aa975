/* A relay over XQUIC: multipath QUIC (draft 10 of the extension) over all paths. docs/reference/stacks.md says what a
 * relay does.
 *
 * XQUIC does no input or output of its own: it takes datagrams, writes datagrams by a callback, and says when to call
 * again. It closes a connection when 8192 frames of a stream wait to be read, in order or not. The relay keeps the
 * window of a stream below that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xquic/xquic.h>

#include "base/net.h"
#include "peers/relay/relay.h"
#include "xlink/udp.h"

#define PROGRAM       "XQUIC relay"
#define ALPN          "relay"
#define STREAM_WINDOW (6u << 20) /* bytes, as libxlink's; 4,700 full frames */
#define SEND_PACKETS  8192       /* of a connection that are not acknowledged yet: 11 MB */
#define PACKET_BYTES  1420       /* the most that XQUIC sends */
#define IDLE_MS       120000
#define RETRY_US      UINT64_C(1000000) /* a path that XQUIC has given up is tried again after so long */
#define READ_BYTES    16384
#define MAX_ROUNDS    64
#define IDLE_WAIT_US  UINT64_C(1000)

typedef struct item item;
struct item { /* a local connection and its stream */
    item *next;
    relay_stream *local;
    xqc_stream_t *stream;      /* NULL: waits for the handshake */
    void *connection;          /* the stream's */
    bool is_sent, is_received; /* a direction is over, and XQUIC or the relay has all of it */
};

typedef struct { /* of the client */
    xl_addr local;
    const char *state; /* NULL: XQUIC does not have it */
    uint64_t id;       /* XQUIC's */
    uint64_t sent, received;
} path;

typedef struct stack stack;
typedef struct connection connection;
struct connection { /* what XQUIC hands to the callbacks */
    connection *next;
    stack *owner;
    xqc_connection_t *of; /* server: NULL until it is accepted */
    xl_addr local;        /* server: where the client came to */
};

struct stack {
    relay_options options;
    const char *scheduler, *reinjection, *congestion;
    bool pacing;
    relay *relay;
    xl_udp *udp;
    xqc_engine_t *engine;
    connection base; /* the client's; of a server, what sends before a connection is accepted */
    connection *accepted;
    xqc_cid_t id; /* the client's */
    bool has_connected, is_connected, must_continue;
    path paths[RELAY_MAX_PATHS];
    path *created;     /* XQUIC has not told its ID yet */
    uint64_t retry_at; /* XL_NEVER: no path is missing */
    uint64_t timer_at; /* XL_NEVER: none */
    unsigned rounds;   /* of a timer that is due at once, since a datagram came */
    item *items;
};

/* XQUIC asks for the time for each packet that it looks at, and has the hook for it in the process. It gets the time at
 * which it was called, as libxlink does: in virtual time each look at the clock takes some. */
static uint64_t called_at;

static void look_at_clock(void) {
    called_at = xl_udp_now();
}

static xqc_usec_t time_of_call(void) {
    return called_at;
}

/* ---- streams ---- */

static item *item_new(stack *t, relay_stream *local) {
    item *i = calloc(1, sizeof *i);
    if (!i)
        return NULL;
    i->next = t->items;
    i->local = local;
    t->items = i;
    relay_set_user(local, i);
    return i;
}

static void item_free(stack *t, item *of) {
    item **at = &t->items;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    if (of->stream)
        xqc_stream_set_user_data(of->stream, NULL);
    free(of);
}

/* The stream is given up in both directions. */
static void cancel(stack *t, item *i) {
    if (i->stream)
        (void)xqc_stream_close(i->stream);
    item_free(t, i);
}

/* Local bytes into the stream. May free the item. */
static void send_bytes(item *i) {
    const uint8_t *data;
    bool fin = false;
    const size_t len = relay_peek(i->local, &data, &fin);
    if (!i->stream || (len == 0 && !fin))
        return;
    const ssize_t taken = xqc_stream_send(i->stream, (unsigned char *)(uintptr_t)data, len, fin);
    if (taken < 0)
        return;
    i->is_sent = fin && (size_t)taken == len;
    relay_consume(i->local, (size_t)taken, i->is_sent);
}

/* Bytes of the stream to the local end, as far as it has room. May free the item. */
static void deliver_bytes(stack *t, item *i) {
    uint8_t buf[READ_BYTES], fin = 0;
    size_t room;
    ssize_t n = 1;
    while (!fin && n > 0 && (room = relay_room(i->local)) > 0) {
        n = xqc_stream_recv(i->stream, buf, room < sizeof buf ? room : sizeof buf, &fin);
        if (n > 0)
            relay_push(i->local, buf, (size_t)n);
    }
    if (fin) {
        i->is_received = true;
        relay_finish(i->local);
    } else if (n == -XQC_ESTREAM_RESET) {
        relay_abort(i->local);
        cancel(t, i);
    }
}

static void start_stream(stack *t, item *i) {
    xqc_stream_settings_t settings = {.recv_rate_bytes_per_sec = 1}; /* the window stays as it is */
    i->stream = xqc_stream_create(t->engine, &t->id, &settings, i);
    i->connection = &t->base;
    if (i->stream)
        send_bytes(i);
}

static bool connect_client(stack *t);

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    item *i = item_new(t, local);
    look_at_clock();
    if (!i)
        relay_abort(local);
    else if (!t->has_connected && !connect_client(t))
        relay_close(t->relay, "a path's local address cannot be used", true);
    else if (t->is_connected)
        start_stream(t, i);
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    look_at_clock();
    send_bytes(relay_user(local));
}

static void on_writable(void *user, relay_stream *local) {
    stack *t = user;
    item *i = relay_user(local);
    if (!i->stream)
        return;
    look_at_clock();
    deliver_bytes(t, i);
    t->must_continue = true; /* reading may have opened the window, and XQUIC does not send that by itself */
}

static void on_gone(void *user, relay_stream *local) {
    look_at_clock();
    cancel(user, relay_user(local));
}

static void on_ended(void *user, relay_stream *local) {
    item_free(user, relay_user(local));
}

/* ---- XQUIC's calls about streams; user is the item, NULL once it is gone ---- */

static stack *stack_of(xqc_stream_t *stream) {
    return ((connection *)xqc_get_conn_user_data_by_stream(stream))->owner;
}

/* A new stream of the client. */
static xqc_int_t stream_created(xqc_stream_t *stream, void *user) {
    stack *t = stack_of(stream);
    xqc_stream_settings_t settings = {.recv_rate_bytes_per_sec = 1};
    if (!t->options.is_server || user)
        return XQC_OK;
    relay_stream *local = relay_connect(t->relay);
    item *i = local ? item_new(t, local) : NULL;
    if (i) {
        i->stream = stream;
        i->connection = xqc_get_conn_user_data_by_stream(stream);
        xqc_stream_set_user_data(stream, i);
        (void)xqc_stream_update_settings(stream, &settings);
        return XQC_OK;
    }
    if (local)
        relay_abort(local);
    (void)xqc_stream_close(stream);
    return XQC_OK;
}

static xqc_int_t stream_readable(xqc_stream_t *stream, void *user) {
    if (user)
        deliver_bytes(stack_of(stream), user);
    return XQC_OK;
}

static xqc_int_t stream_writable(xqc_stream_t *stream, void *user) {
    (void)stream;
    if (user)
        send_bytes(user);
    return XQC_OK;
}

/* Both directions are over, or the connection is. */
static xqc_int_t stream_closed(xqc_stream_t *stream, void *user) {
    item *i = user;
    if (!i)
        return XQC_OK;
    i->stream = NULL;
    if (i->is_sent && i->is_received)
        return XQC_OK; /* the relay has bytes left, and says when it ends */
    relay_abort(i->local);
    item_free(stack_of(stream), i);
    return XQC_OK;
}

/* ---- the client's paths ---- */

static bool open_sockets(stack *t) {
    for (size_t k = 0; k < t->options.path_count; k++)
        if (xl_udp_add_socket(t->udp, &t->options.paths[k].local, &t->paths[k].local) < 0)
            return false;
    return true;
}

/* Begins the paths that XQUIC does not have. Where it has no connection ID for one, it says later that it has. */
static void create_paths(stack *t) {
    t->retry_at = XL_NEVER;
    for (size_t k = 0; k < t->options.path_count; k++) {
        path *p = &t->paths[k];
        if (p->state)
            continue;
        t->created = p;
        const bool is_created =
            xqc_conn_create_path(t->engine, &t->id, &p->id, strcmp(t->scheduler, "backup") == 0) >= 0;
        t->created = NULL;
        if (!is_created)
            return;
        p->state = "probing";
    }
}

static void may_create_path(const xqc_cid_t *id, void *user) {
    stack *t = ((connection *)user)->owner;
    (void)id;
    if (!t->options.is_server)
        create_paths(t);
}

static int path_created(xqc_connection_t *of, const xqc_cid_t *id, uint64_t path_id, void *user) {
    (void)of;
    (void)id;
    (void)path_id;
    (void)user;
    return 0;
}

static path *path_of(stack *t, uint64_t id) {
    for (size_t k = 0; k < t->options.path_count; k++)
        if (t->paths[k].state && t->paths[k].id == id)
            return &t->paths[k];
    return t->created;
}

static void path_removed(const xqc_cid_t *id, uint64_t path_id, void *user) {
    stack *t = ((connection *)user)->owner;
    path *p = t->options.is_server ? NULL : path_of(t, path_id);
    (void)id;
    if (!p)
        return;
    p->state = NULL;
    t->retry_at = called_at + RETRY_US;
}

static void on_path_facts(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    const path *p = &t->paths[k];
    if (!p->state && p->sent == 0)
        return;
    /* XQUIC tells the RTT of its first path alone, 250 ms until it has a sample. */
    const bool is_first = p->state && p->id == XQC_INITIAL_PATH_ID && p->received > 0 && t->is_connected;
    *out = (relay_path_facts){.state = p->state ? p->state : "closed",
                              .bytes_sent = p->sent,
                              .bytes_received = p->received,
                              .srtt_us = is_first ? xqc_conn_get_qos_stats(t->engine, &t->id).srtt : 0};
}

/* ---- datagrams ---- */

static ssize_t write_datagram(uint64_t path_id, const unsigned char *data, size_t len, const struct sockaddr *to,
                              socklen_t to_len, void *user) {
    const connection *c = user;
    stack *t = c->owner;
    xl_datagram d = {.local = c->local, .len = len};
    path *p = t->options.is_server ? NULL : path_of(t, path_id);
    (void)to_len;
    if (!xl_udp_has_room(t->udp)) {
        t->must_continue = true;
        return XQC_SOCKET_EAGAIN;
    }
    if ((!p && !t->options.is_server) || !net_from_sockaddr(to, &d.remote))
        return XQC_SOCKET_ERROR;
    if (p) {
        d.local = p->local;
        p->sent += len;
    }
    xl_udp_queue(t->udp, &d, data);
    return (ssize_t)len;
}

static ssize_t write_first(const unsigned char *data, size_t len, const struct sockaddr *to, socklen_t to_len,
                           void *user) {
    return write_datagram(XQC_INITIAL_PATH_ID, data, len, to, to_len, user);
}

static ssize_t write_reset(const unsigned char *data, size_t len, const struct sockaddr *to, socklen_t to_len,
                           const struct sockaddr *from, socklen_t from_len, void *user) {
    (void)from;
    (void)from_len;
    return write_datagram(XQC_INITIAL_PATH_ID, data, len, to, to_len, user);
}

static void receive(void *user, const xl_datagram *d, uint8_t *data) {
    stack *t = user;
    t->rounds = 0;
    struct sockaddr_storage from, to;
    const socklen_t from_len = net_to_sockaddr(&d->remote, &from), to_len = net_to_sockaddr(&d->local, &to);
    for (size_t k = 0; k < t->options.path_count; k++) {
        path *p = &t->paths[k];
        if (!xl_addr_equal(&p->local, &d->local))
            continue;
        p->received += d->len;
        if (p->state)
            p->state = "active";
    }
    if (t->options.is_server)
        t->base.local = d->local;
    (void)xqc_engine_packet_process(t->engine, data, d->len, (struct sockaddr *)&to, to_len, (struct sockaddr *)&from,
                                    from_len, called_at, &t->base);
}

/* XQUIC may ask to be called at once over and over while a path is silent: after some rounds it waits a little. */
static void set_timer(xqc_usec_t after_us, void *user) {
    stack *t = user;
    t->rounds = after_us < IDLE_WAIT_US ? t->rounds + 1 : 0;
    t->timer_at = called_at + (t->rounds > MAX_ROUNDS ? IDLE_WAIT_US : after_us);
}

static void continue_sending(stack *t) {
    t->must_continue = false;
    if (t->has_connected)
        (void)xqc_conn_continue_send(t->engine, &t->id);
    for (connection *c = t->accepted; c; c = c->next)
        xqc_conn_continue_send_by_conn(c->of);
}

static void step(void *user, uint64_t now) {
    stack *t = user;
    called_at = now;
    xl_udp_receive_each(t->udp, receive, t);
    xqc_engine_finish_recv(t->engine);
    if (now >= t->timer_at) {
        t->timer_at = XL_NEVER;
        xqc_engine_main_logic(t->engine);
    }
    if (t->must_continue && xl_udp_has_room(t->udp))
        continue_sending(t);
    if (t->is_connected && now >= t->retry_at)
        create_paths(t);
    xl_udp_send(t->udp);
}

static uint64_t next_timeout(void *user) {
    const stack *t = user;
    return t->timer_at < t->retry_at ? t->timer_at : t->retry_at;
}

/* ---- XQUIC's calls about connections ---- */

static int accept_connection(xqc_engine_t *engine, xqc_connection_t *of, const xqc_cid_t *id, void *user) {
    stack *t = ((connection *)user)->owner;
    connection *c = calloc(1, sizeof *c);
    (void)engine;
    (void)id;
    if (!c)
        return -1;
    *c = (connection){.next = t->accepted, .owner = t, .of = of, .local = t->base.local};
    t->accepted = c;
    xqc_conn_set_transport_user_data(of, c);
    return 0;
}

static void drop_connection(connection *c) {
    stack *t = c->owner;
    connection **at = &t->accepted;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) {
        *at = c->next;
        free(c);
    }
}

static void refuse_connection(xqc_engine_t *engine, xqc_connection_t *of, const xqc_cid_t *id, void *user) {
    (void)engine;
    (void)of;
    (void)id;
    drop_connection(user);
}

static int connection_created(xqc_connection_t *of, const xqc_cid_t *id, void *user, void *of_protocol) {
    (void)id;
    (void)of_protocol;
    xqc_conn_set_alp_user_data(of, user);
    return 0;
}

static int connection_closed(xqc_connection_t *of, const xqc_cid_t *id, void *user, void *of_protocol) {
    connection *c = user;
    stack *t = c->owner;
    char reason[80];
    (void)id;
    (void)of_protocol;
    for (item *i = t->items, *next; i; i = next) {
        next = i->next;
        if (i->connection != c && t->options.is_server)
            continue;
        relay_abort(i->local);
        item_free(t, i);
    }
    if (t->options.is_server) {
        drop_connection(c);
        return 0;
    }
    t->is_connected = false;
    const xqc_int_t error = xqc_conn_get_errno(of);
    snprintf(reason, sizeof reason, "XQUIC has closed the connection: error 0x%x", (unsigned)error);
    relay_close(t->relay, error ? reason : "the connection has ended", true);
    return 0;
}

static void handshake_done(xqc_connection_t *of, void *user, void *of_protocol) {
    stack *t = ((connection *)user)->owner;
    (void)of;
    (void)of_protocol;
    if (t->options.is_server)
        return;
    t->is_connected = true;
    for (item *i = t->items, *next; i; i = next) {
        next = i->next;
        if (!i->stream)
            start_stream(t, i);
    }
}

static void id_changed(xqc_connection_t *of, const xqc_cid_t *old, const xqc_cid_t *id, void *user) {
    stack *t = ((connection *)user)->owner;
    (void)of;
    if (!t->options.is_server && xqc_cid_is_equal(&t->id, old) == XQC_OK)
        t->id = *id;
}

static void ignore_text(const char *data, size_t len, void *user) {
    (void)data;
    (void)len;
    (void)user;
}

static void ignore_token(const unsigned char *token, uint32_t len, void *user) {
    (void)token;
    (void)len;
    (void)user;
}

static void ignore_log(xqc_log_level_t level, const void *data, size_t len, void *user) {
    (void)level;
    (void)data;
    (void)len;
    (void)user;
}

static int trust(const unsigned char *certificates[], const size_t lens[], size_t count, void *user) {
    (void)certificates;
    (void)lens;
    (void)count;
    (void)user;
    return 0;
}

/* ---- the program ---- */

/* XQUIC's own names of what it can be told. */
static const char *const schedulers[] = {"minrtt", "backup", "rap", NULL};
static const char *const reinjections[] = {"none", "tail", "deadline", NULL};
static const char *const controllers[] = {"cubic", "bbr", NULL};

static const setting rows[] = {
    {"scheduler", SETTING_WORD, SETTING_FIELD(stack, scheduler), .words = schedulers, .fallback = "minrtt",
     .help = "XQUIC's. With backup, paths other than the primary one are on standby."},
    {"reinjection", SETTING_WORD, SETTING_FIELD(stack, reinjection), .words = reinjections, .fallback = "none",
     .help =
         "tail: unacknowledged packets once nothing else is left to send; deadline: those older than XQUIC's limit."},
    {"cc", SETTING_WORD, SETTING_FIELD(stack, congestion), .words = controllers, .fallback = "cubic",
     .help = "Congestion controller of each path."},
    {"pacing", SETTING_SWITCH, SETTING_FIELD(stack, pacing), .fallback = "on", .help = "Whether packets are paced."},
    {0},
};

static xqc_conn_settings_t settings_of(const stack *t) {
    xqc_conn_settings_t s = xqc_conn_get_conn_settings_template(XQC_CONN_SETTINGS_DEFAULT);
    s.pacing_on = t->pacing;
    s.cong_ctrl_callback = strcmp(t->congestion, "bbr") == 0 ? xqc_bbr_cb : xqc_cubic_cb;
    s.scheduler_callback = strcmp(t->scheduler, "backup") == 0 ? xqc_backup_scheduler_cb
                           : strcmp(t->scheduler, "rap") == 0  ? xqc_rap_scheduler_cb
                                                               : xqc_minrtt_scheduler_cb;
    s.enable_multipath = t->options.is_server || t->options.path_count > 1;
    s.multipath_version = XQC_MULTIPATH_10;
    s.init_max_path_id = RELAY_MAX_PATHS;
    if (strcmp(t->reinjection, "tail") == 0) {
        s.mp_enable_reinjection = XQC_REINJ_UNACK_AFTER_SCHED;
        s.reinj_ctl_callback = xqc_default_reinj_ctl_cb;
    } else if (strcmp(t->reinjection, "deadline") == 0) {
        s.mp_enable_reinjection = XQC_REINJ_UNACK_BEFORE_SCHED;
        s.reinj_ctl_callback = xqc_deadline_reinj_ctl_cb;
    }
    s.max_pkt_out_size = PACKET_BYTES;
    s.sndq_packets_used_max = SEND_PACKETS;
    s.idle_time_out = IDLE_MS;
    s.enable_stream_rate_limit = 1; /* else the window of a stream would grow to 16 MiB */
    s.init_recv_window = STREAM_WINDOW;
    return s;
}

static bool make_engine(stack *t) {
    const relay_options *o = &t->options;
    static char ciphers[] = XQC_TLS_CIPHERS, groups[] = XQC_TLS_GROUPS;
    const xqc_engine_ssl_config_t tls = {.private_key_file = (char *)(uintptr_t)o->key_file,
                                         .cert_file = (char *)(uintptr_t)o->certificate_file,
                                         .ciphers = ciphers,
                                         .groups = groups};
    const xqc_engine_callback_t engine_calls = {
        .set_event_timer = set_timer,
        .realtime_ts = time_of_call,
        .monotonic_ts = time_of_call,
        .log_callbacks = {.xqc_log_write_err = ignore_log, .xqc_log_write_stat = ignore_log}};
    const xqc_transport_callbacks_t transport_calls = {.server_accept = accept_connection,
                                                       .server_refuse = refuse_connection,
                                                       .stateless_reset = write_reset,
                                                       .write_socket = write_first,
                                                       .write_socket_ex = write_datagram,
                                                       .conn_send_packet_before_accept = write_first,
                                                       .conn_update_cid_notify = id_changed,
                                                       .save_token = ignore_token,
                                                       .save_session_cb = ignore_text,
                                                       .save_tp_cb = ignore_text,
                                                       .cert_verify_cb = trust,
                                                       .ready_to_create_path_notify = may_create_path,
                                                       .path_created_notify = path_created,
                                                       .path_removed_notify = path_removed};
    xqc_app_proto_callbacks_t calls = {.conn_cbs = {.conn_create_notify = connection_created,
                                                    .conn_close_notify = connection_closed,
                                                    .conn_handshake_finished = handshake_done},
                                       .stream_cbs = {.stream_create_notify = stream_created,
                                                      .stream_read_notify = stream_readable,
                                                      .stream_write_notify = stream_writable,
                                                      .stream_close_notify = stream_closed}};
    const xqc_engine_type_t type = o->is_server ? XQC_ENGINE_SERVER : XQC_ENGINE_CLIENT;
    xqc_config_t config;
    xqc_log_disable(XQC_TRUE);
    if (xqc_engine_get_default_config(&config, type) != XQC_OK)
        return false;
    config.cfg_log_level = XQC_LOG_FATAL;
    t->engine = xqc_engine_create(type, &config, &tls, &engine_calls, &transport_calls, t);
    if (!t->engine || xqc_engine_register_alpn(t->engine, ALPN, sizeof ALPN - 1, &calls, NULL) != XQC_OK)
        return false;
    const xqc_conn_settings_t settings = settings_of(t);
    if (o->is_server)
        xqc_server_set_conn_settings(t->engine, &settings);
    return true;
}

static bool connect_client(stack *t) {
    const xqc_conn_settings_t settings = settings_of(t);
    const xqc_conn_ssl_config_t tls = {0};
    struct sockaddr_storage to;
    const socklen_t len = net_to_sockaddr(&t->options.server, &to);
    t->has_connected = true;
    if (!open_sockets(t))
        return false;
    t->paths[0].state = "active";
    t->paths[0].id = XQC_INITIAL_PATH_ID;
    const xqc_cid_t *id =
        xqc_connect(t->engine, &settings, NULL, 0, "localhost", 0, &tls, (struct sockaddr *)&to, len, ALPN, &t->base);
    if (id)
        t->id = *id;
    return id != NULL;
}

static bool say(char *error, const char *sentence) {
    snprintf(error, RELAY_ERROR_BYTES, "%s", sentence);
    return false;
}

static bool start(stack *t, char *error) {
    static const relay_stack ops = {.open = on_open,
                                    .readable = on_readable,
                                    .writable = on_writable,
                                    .gone = on_gone,
                                    .ended = on_ended,
                                    .next_timeout = next_timeout,
                                    .step = step,
                                    .path = on_path_facts};
    const relay_options *o = &t->options;
    if (o->is_server && (!o->certificate_file || !o->key_file))
        return say(error, "--certificate and --key are required.");
    look_at_clock();
    t->base.owner = t;
    t->timer_at = t->retry_at = XL_NEVER;
    if (!make_engine(t))
        return say(error,
                   o->is_server ? "XQUIC cannot start; are --certificate and --key PEM files?" : "XQUIC cannot start.");
    t->udp = xl_udp_new();
    xl_addr bound;
    if (!t->udp || (o->is_server && xl_udp_add_socket(t->udp, &o->listen, &bound) < 0))
        return say(error, "Cannot listen there.");
    if (o->is_server)
        t->options.listen = bound;
    t->relay = relay_new(&t->options, &ops, t, error);
    return t->relay && relay_watch(t->relay, xl_udp_fd(t->udp));
}

int main(int argc, char **argv) {
    static stack t;
    char error[SETTINGS_ERROR_BYTES] = "";
    const relay_own_options own = {.rows = rows, .into = &t};
    if (argc > 1 && strcmp(argv[1], "version") == 0) {
        printf("XQUIC %d.%d\n", xquic_VERSION_MAJOR, xquic_VERSION_MINOR);
        return 0;
    }
    t.scheduler = schedulers[0];
    t.reinjection = reinjections[0];
    t.congestion = controllers[0];
    t.pacing = true;
    bool ok = relay_options_read(argc, argv, &own, &t.options, error);
    if (t.options.help)
        return 0;
    ok = ok && start(&t, error);
    const int status = ok ? relay_run(t.relay) : 2;
    if (!ok)
        fprintf(stderr, PROGRAM ": %s\n", error);
    if (ok && t.is_connected && xqc_conn_close(t.engine, &t.id) == XQC_OK) {
        xqc_engine_main_logic(t.engine);
        xl_udp_send(t.udp);
    }
    while (t.items)
        item_free(&t, t.items);
    if (t.engine)
        xqc_engine_destroy(t.engine);
    while (t.accepted)
        drop_connection(t.accepted);
    relay_free(t.relay);
    xl_udp_free(t.udp);
    return status;
}
