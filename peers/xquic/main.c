/* A relay over XQUIC: multipath QUIC (draft 10 of the extension) over all paths. docs/reference/stacks.md describes
 * relays.
 *
 * XQUIC does no I/O: it takes datagrams, writes datagrams by a callback, and returns when to call it again. It closes a
 * connection if 8192 frames of a stream wait to be read, in order or not. The relay's stream window is smaller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xquic/xquic.h>

#include "base/net.h"
#include "peers/relay/udp.h"

#define ALPN          "relay"
#define STREAM_WINDOW (6u << 20) /* bytes, the same as libxlink's; 5,400 full frames */
#define SEND_PACKETS  8192       /* unacknowledged packets per connection; 9.8 MB at 1200 bytes */
#define IDLE_MS       120000
#define RETRY_US      UINT64_C(1000000) /* until a path that XQUIC has removed is opened again */
#define READ_BYTES    16384
#define MAX_ROUNDS    64
#define IDLE_WAIT_US  UINT64_C(1000)

typedef struct {               /* stream of a local connection */
    xqc_stream_t *stream;      /* NULL: waits for the handshake */
    void *connection;          /* of the stream */
    bool is_sent, is_received; /* XQUIC, or the relay, has taken everything including the end */
} item;

typedef struct {       /* client: a path */
    const char *state; /* NULL: not open in XQUIC */
    uint64_t id;       /* in XQUIC */
    uint64_t sent, received;
} path;

typedef struct stack stack;
typedef struct connection connection;
struct connection { /* user data of XQUIC's callbacks */
    connection *next;
    stack *owner;
    xqc_connection_t *of; /* server: the accepted connection */
    xl_addr local;        /* server: destination address of the client's datagrams */
};

struct stack {
    relay_udp u;
    const char *scheduler, *reinjection, *cc;
    bool pacing;
    bool pmtud;
    uint32_t datagram_bytes;
    xqc_engine_t *engine;
    connection base; /* client: its connection; server: for packets before a connection is accepted */
    connection *accepted;
    xqc_cid_t id; /* client */
    bool has_connected, is_connected, must_continue;
    path paths[RELAY_MAX_PATHS];
    path *created;     /* path that XQUIC is creating, whose ID is not known yet */
    uint64_t retry_at; /* next call of create_paths(); XL_NEVER: none */
    uint64_t timer_at; /* XQUIC's next timer; XL_NEVER: none */
    unsigned rounds;   /* consecutive timers due at once, since the last datagram was received */
    FILE *secrets;     /* NSS key log; NULL: none */
};

/* For read_clock(), a hook without argument that XQUIC calls for every packet. */
static const uint64_t *the_clock;

static xqc_usec_t read_clock(void) {
    return *the_clock;
}

/* ---- streams ---- */

static void on_release(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->stream)
        xqc_stream_set_user_data(i->stream, NULL);
}

/* Cancels the stream in both directions. */
static void on_gone(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->stream)
        (void)xqc_stream_close(i->stream);
}

/* Sends local bytes on the stream. May end it. */
static void send_bytes(item *i) {
    relay_stream *local = relay_stream_of(i);
    const uint8_t *data;
    bool fin = false;
    const size_t len = relay_peek(local, &data, &fin);
    if (!i->stream || (len == 0 && !fin))
        return;
    const ssize_t taken = xqc_stream_send(i->stream, (unsigned char *)(uintptr_t)data, len, fin);
    if (taken < 0)
        return;
    i->is_sent = fin && (size_t)taken == len;
    relay_consume(local, (size_t)taken, i->is_sent);
}

/* Delivers received bytes to the local end, as far as it has room. May end the stream. */
static void deliver_bytes(item *i) {
    relay_stream *local = relay_stream_of(i);
    uint8_t buf[READ_BYTES], fin = 0;
    size_t room;
    ssize_t n = 1;
    while (!fin && n > 0 && (room = relay_room(local)) > 0) {
        n = xqc_stream_recv(i->stream, buf, room < sizeof buf ? room : sizeof buf, &fin);
        if (n > 0)
            relay_push(local, buf, (size_t)n);
    }
    if (fin) {
        i->is_received = true;
        relay_finish(local);
    } else if (n == -XQC_ESTREAM_RESET) {
        (void)xqc_stream_close(i->stream);
        relay_abort(local);
    }
}

static void start_stream(stack *t, item *i) {
    xqc_stream_settings_t settings = {.recv_rate_bytes_per_sec = 1}; /* keeps the window constant */
    i->stream = xqc_stream_create(t->engine, &t->id, &settings, i);
    i->connection = &t->base;
    if (i->stream)
        send_bytes(i);
}

static void connect_client(stack *t);

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    if (!t->has_connected)
        connect_client(t);
    else if (t->is_connected)
        start_stream(t, relay_state(local));
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    send_bytes(relay_state(local));
}

static void on_writable(void *user, relay_stream *local) {
    stack *t = user;
    item *i = relay_state(local);
    if (!i->stream)
        return;
    deliver_bytes(i);
    t->must_continue = true; /* reading may have opened the window, which XQUIC does not send by itself */
}

/* ---- XQUIC's stream callbacks; user: the item, NULL after its end ---- */

static stack *stack_of(xqc_stream_t *stream) {
    return ((connection *)xqc_get_conn_user_data_by_stream(stream))->owner;
}

/* Connects a new stream of the client to the upstream server. */
static xqc_int_t stream_created(xqc_stream_t *stream, void *user) {
    stack *t = stack_of(stream);
    xqc_stream_settings_t settings = {.recv_rate_bytes_per_sec = 1};
    if (!t->u.options.is_server || user)
        return XQC_OK;
    relay_stream *local = relay_connect(t->u.relay);
    if (!local) {
        (void)xqc_stream_close(stream);
        return XQC_OK;
    }
    item *i = relay_state(local);
    i->stream = stream;
    i->connection = xqc_get_conn_user_data_by_stream(stream);
    xqc_stream_set_user_data(stream, i);
    (void)xqc_stream_update_settings(stream, &settings);
    return XQC_OK;
}

static xqc_int_t stream_readable(xqc_stream_t *stream, void *user) {
    (void)stream;
    if (user)
        deliver_bytes(user);
    return XQC_OK;
}

static xqc_int_t stream_writable(xqc_stream_t *stream, void *user) {
    (void)stream;
    if (user)
        send_bytes(user);
    return XQC_OK;
}

/* Handles the end of both directions, or of the connection. */
static xqc_int_t stream_closed(xqc_stream_t *stream, void *user) {
    item *i = user;
    (void)stream;
    if (!i)
        return XQC_OK;
    i->stream = NULL;
    if (!i->is_sent || !i->is_received) /* otherwise the relay ends it after its last bytes */
        relay_abort(relay_stream_of(i));
    return XQC_OK;
}

/* ---- the client's paths ---- */

/* Opens the missing paths. If XQUIC has no connection ID for one, may_create_path() follows later. */
static void create_paths(stack *t) {
    t->retry_at = XL_NEVER;
    for (size_t k = 0; k < t->u.options.path_count; k++) {
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
    if (!t->u.options.is_server)
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
    for (size_t k = 0; k < t->u.options.path_count; k++)
        if (t->paths[k].state && t->paths[k].id == id)
            return &t->paths[k];
    return t->created;
}

static void path_removed(const xqc_cid_t *id, uint64_t path_id, void *user) {
    stack *t = ((connection *)user)->owner;
    path *p = t->u.options.is_server ? NULL : path_of(t, path_id);
    (void)id;
    if (!p)
        return;
    p->state = NULL;
    t->retry_at = *the_clock + RETRY_US;
}

static void on_path_facts(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    const path *p = &t->paths[k];
    if (!p->state && p->sent == 0)
        return;
    /* XQUIC reports the RTT of its first path only, as 250 ms before the first sample. */
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
    path *p = t->u.options.is_server ? NULL : path_of(t, path_id);
    (void)to_len;
    if (!xl_udp_has_room(t->u.udp)) {
        t->must_continue = true;
        return XQC_SOCKET_EAGAIN;
    }
    if ((!p && !t->u.options.is_server) || !net_from_sockaddr(to, &d.remote))
        return XQC_SOCKET_ERROR;
    if (p) {
        d.local = t->u.local[p - t->paths];
        p->sent += len;
    }
    xl_udp_queue(t->u.udp, &d, data);
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
    for (size_t k = 0; k < t->u.options.path_count; k++) {
        path *p = &t->paths[k];
        if (!xl_addr_equal(&t->u.local[k], &d->local))
            continue;
        p->received += d->len;
        if (p->state)
            p->state = "active";
    }
    if (t->u.options.is_server)
        t->base.local = d->local;
    (void)xqc_engine_packet_process(t->engine, data, d->len, (struct sockaddr *)&to, to_len, (struct sockaddr *)&from,
                                    from_len, *the_clock, &t->base);
}

/* While a path is silent, XQUIC may repeatedly ask to be called at once. After MAX_ROUNDS, waits IDLE_WAIT_US. */
static void set_timer(xqc_usec_t after_us, void *user) {
    stack *t = user;
    t->rounds = after_us < IDLE_WAIT_US ? t->rounds + 1 : 0;
    t->timer_at = *the_clock + (t->rounds > MAX_ROUNDS ? IDLE_WAIT_US : after_us);
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
    xl_udp_receive_each(t->u.udp, receive, t);
    xqc_engine_finish_recv(t->engine);
    if (now >= t->timer_at) {
        t->timer_at = XL_NEVER;
        xqc_engine_main_logic(t->engine);
    }
    if (t->must_continue && xl_udp_has_room(t->u.udp))
        continue_sending(t);
    if (t->is_connected && now >= t->retry_at)
        create_paths(t);
    xl_udp_send(t->u.udp);
}

static uint64_t next_timeout(void *user) {
    const stack *t = user;
    return t->timer_at < t->retry_at ? t->timer_at : t->retry_at;
}

/* ---- XQUIC's connection callbacks ---- */

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
    for (relay_stream *local = relay_first(t->u.relay), *next; local; local = next) {
        next = relay_next(local);
        if (((item *)relay_state(local))->connection == c || !t->u.options.is_server)
            relay_abort(local);
    }
    if (t->u.options.is_server) {
        drop_connection(c);
        return 0;
    }
    t->is_connected = false;
    const xqc_int_t error = xqc_conn_get_errno(of);
    snprintf(reason, sizeof reason, "XQUIC has closed the connection: error 0x%x", (unsigned)error);
    relay_close(t->u.relay, error ? reason : "the connection has ended", true);
    return 0;
}

static void handshake_done(xqc_connection_t *of, void *user, void *of_protocol) {
    stack *t = ((connection *)user)->owner;
    (void)of;
    (void)of_protocol;
    if (t->u.options.is_server)
        return;
    t->is_connected = true;
    for (relay_stream *local = relay_first(t->u.relay), *next; local; local = next) {
        next = relay_next(local);
        if (!((item *)relay_state(local))->stream)
            start_stream(t, relay_state(local));
    }
}

static void id_changed(xqc_connection_t *of, const xqc_cid_t *old, const xqc_cid_t *id, void *user) {
    stack *t = ((connection *)user)->owner;
    (void)of;
    if (!t->u.options.is_server && xqc_cid_is_equal(&t->id, old) == XQC_OK)
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

/* XQUIC calls this if it is built with XQC_PRINT_SECRET. */
static void log_secret(const xqc_cid_t *id, const char *line, void *user) {
    const stack *t = user;
    (void)id;
    if (t->secrets)
        fprintf(t->secrets, "%s\n", line);
}

static int trust(const unsigned char *certificates[], const size_t lens[], size_t count, void *user) {
    (void)certificates;
    (void)lens;
    (void)count;
    (void)user;
    return 0;
}

/* ---- the program ---- */

/* Values of options, as named by XQUIC. */
static const char *const schedulers[] = {"minrtt", "backup", "rap", NULL};
static const char *const reinjections[] = {"none", "tail", "deadline", NULL};
static const char *const controllers[] = {"cubic", "bbr", NULL};

static const setting rows[] = {
    {"scheduler", SETTING_WORD, SETTING_FIELD(stack, scheduler), .words = schedulers, .fallback = "minrtt",
     .help = "XQUIC's. With backup, paths other than the primary one are on standby."},
    {"reinjection", SETTING_WORD, SETTING_FIELD(stack, reinjection), .words = reinjections, .fallback = "none",
     .help =
         "tail: unacknowledged packets once nothing else is left to send; deadline: those older than XQUIC's limit."},
    {"cc", SETTING_WORD, SETTING_FIELD(stack, cc), .words = controllers, .fallback = "cubic",
     .help = "Congestion controller of each path."},
    {"pacing", SETTING_SWITCH, SETTING_FIELD(stack, pacing), .fallback = "on", .help = "Whether packets are paced."},
    {"pmtud", SETTING_SWITCH, SETTING_FIELD(stack, pmtud), .fallback = "on",
     .help = "Whether larger datagrams are tried, from 5 s after the start on."},
    {"datagram", SETTING_WHOLE, SETTING_FIELD(stack, datagram_bytes), .least = 1200, .most = 1420, .fallback = "1200",
     .help = "What datagrams have at most without a search, bytes."},
    {0},
};

static xqc_conn_settings_t settings_of(const stack *t) {
    xqc_conn_settings_t s = xqc_conn_get_conn_settings_template(XQC_CONN_SETTINGS_DEFAULT);
    s.pacing_on = t->pacing;
    s.cong_ctrl_callback = strcmp(t->cc, "bbr") == 0 ? xqc_bbr_cb : xqc_cubic_cb;
    s.scheduler_callback = strcmp(t->scheduler, "backup") == 0 ? xqc_backup_scheduler_cb
                           : strcmp(t->scheduler, "rap") == 0  ? xqc_rap_scheduler_cb
                                                               : xqc_minrtt_scheduler_cb;
    s.enable_multipath = t->u.options.is_server || t->u.options.path_count > 1;
    s.multipath_version = XQC_MULTIPATH_10;
    s.init_max_path_id = RELAY_MAX_PATHS;
    if (strcmp(t->reinjection, "tail") == 0) {
        s.mp_enable_reinjection = XQC_REINJ_UNACK_AFTER_SCHED;
        s.reinj_ctl_callback = xqc_default_reinj_ctl_cb;
    } else if (strcmp(t->reinjection, "deadline") == 0) {
        s.mp_enable_reinjection = XQC_REINJ_UNACK_BEFORE_SCHED;
        s.reinj_ctl_callback = xqc_deadline_reinj_ctl_cb;
    }
    s.max_pkt_out_size = t->datagram_bytes;
    s.enable_pmtud = t->pmtud ? XQC_PMTUD_ENABLE_MASK : XQC_PMTUD_DISABLE;
    s.sndq_packets_used_max = SEND_PACKETS;
    s.idle_time_out = IDLE_MS;
    s.init_idle_time_out = IDLE_MS; /* otherwise a server drops a handshake after 10 s, but the client does not */
    s.enable_stream_rate_limit = 1; /* otherwise the window of a stream would grow to 16 MiB */
    s.init_recv_window = STREAM_WINDOW;
    return s;
}

static bool make_engine(stack *t) {
    const relay_options *o = &t->u.options;
    static char ciphers[] = XQC_TLS_CIPHERS, groups[] = XQC_TLS_GROUPS;
    const xqc_engine_ssl_config_t tls = {.private_key_file = (char *)(uintptr_t)o->key_file,
                                         .cert_file = (char *)(uintptr_t)o->certificate_file,
                                         .ciphers = ciphers,
                                         .groups = groups};
    const xqc_engine_callback_t engine_calls = {
        .set_event_timer = set_timer,
        .realtime_ts = read_clock,
        .monotonic_ts = read_clock,
        .log_callbacks = {.xqc_log_write_err = ignore_log, .xqc_log_write_stat = ignore_log},
        .keylog_cb = log_secret};
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

static void connect_client(stack *t) {
    const xqc_conn_settings_t settings = settings_of(t);
    const xqc_conn_ssl_config_t tls = {0};
    struct sockaddr_storage to;
    const socklen_t len = net_to_sockaddr(&t->u.options.server, &to);
    t->has_connected = true;
    if (!relay_udp_bind(&t->u, t->u.options.path_count))
        return;
    t->paths[0].state = "active";
    t->paths[0].id = XQC_INITIAL_PATH_ID;
    const xqc_cid_t *id =
        xqc_connect(t->engine, &settings, NULL, 0, "localhost", 0, &tls, (struct sockaddr *)&to, len, ALPN, &t->base);
    if (id)
        t->id = *id;
    else
        relay_close(t->u.relay, "XQUIC cannot connect", true);
}

static bool start(void *user, char *error) {
    stack *t = user;
    the_clock = relay_clock(t->u.relay);
    t->base.owner = t;
    t->timer_at = t->retry_at = XL_NEVER;
    const char *secrets_file = getenv("SSLKEYLOGFILE");
    if (secrets_file && (t->secrets = fopen(secrets_file, "a")))
        setvbuf(t->secrets, NULL, _IOLBF, 0); /* complete lines, even if the relay is killed */
    return make_engine(t) ||
           relay_refuse(error, t->u.options.is_server ? "XQUIC cannot start; are --certificate and --key PEM files?"
                                                      : "XQUIC cannot start.");
}

static void close_connection(void *user) {
    stack *t = user;
    if (t->is_connected && xqc_conn_close(t->engine, &t->id) == XQC_OK)
        xqc_engine_main_logic(t->engine);
}

static void destroy(void *user) {
    stack *t = user;
    if (t->engine)
        xqc_engine_destroy(t->engine);
    while (t->accepted)
        drop_connection(t->accepted);
    if (t->secrets)
        fclose(t->secrets);
}

int main(int argc, char **argv) {
    static stack t = {.scheduler = "minrtt",
                      .reinjection = "none",
                      .cc = "cubic",
                      .pacing = true,
                      .pmtud = true,
                      .datagram_bytes = 1200};
    static char version[32];
    const relay_program program = {.name = "XQUIC relay",
                                   .version = version,
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
    snprintf(version, sizeof version, "XQUIC %d.%d", xquic_VERSION_MAJOR, xquic_VERSION_MINOR);
    return relay_over_udp(argc, argv, &program, &own, &t, &t.u);
}
