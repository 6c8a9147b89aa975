/* HTTP/1.1 over the kernel's TCP or MPTCP. Kernel TCP has no streams, so `concurrency` requests at a time take as many
 * persistent connections. Each is bound to the primary path's address; with MPTCP the kernel adds subflows over the
 * other addresses as its endpoints (`ip mptcp`) say. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http1.h"
#include "base/net.h"
#include "base/tcp_stats.h"
#include "player/transport.h"

#define CONNECT_LIMIT_US   UINT64_C(10000000)
#define SAMPLE_INTERVAL_US UINT64_C(500000)
#define READ_BYTES         ((size_t)65536)
#define READS_PER_STEP     32
#define REQUEST_BYTES      (HTTP1_MAX_TARGET_BYTES + 512)

typedef enum { CLOSED, CONNECTING, IDLE, BUSY } connection_state;

typedef struct {
    connection_state state;
    int fd;
    uint32_t events;
    uint64_t connect_deadline;

    /* The open request, if any; while CONNECTING it waits for the connection. */
    bool has_request;
    uint64_t id, first, last;
    char out[REQUEST_BYTES];
    size_t out_len, out_sent;
    char head[HTTP1_MAX_HEAD_BYTES];
    size_t head_len, scanned;
    bool head_done, keep_alive;
    uint64_t received;
} connection;

typedef struct {
    bool mptcp;
    player_transport_callbacks cb;
    xl_addr server;
    player_path paths[PLAYER_MAX_PATHS];
    size_t path_count;
    char target[HTTP1_MAX_TARGET_BYTES + 1];
    char authority[96];

    bool connected, over;
    char dead[PLAYER_ERROR_BYTES]; /* why; reported by the next step() */
    tcp_stats stats;
    uint64_t next_sample;
    unsigned count;
    connection connections[];
} tcp_transport;

static tcp_transport *from_handle(player_transport *t) {
    return (tcp_transport *)t;
}

static void watch(tcp_transport *t, connection *c, uint32_t events) {
    if (c->events != events) {
        c->events = events;
        t->cb.watch(t->cb.user, c->fd, events);
    }
}

static void sample(tcp_transport *t, const connection *c) {
    if (c->state != IDLE && c->state != BUSY)
        return;
    if (t->mptcp)
        tcp_stats_sample_mptcp(&t->stats, c->fd);
    else
        tcp_stats_sample_tcp(&t->stats, c->fd);
}

static void close_connection(tcp_transport *t, connection *c) {
    if (c->state != CLOSED) {
        sample(t, c);
        watch(t, c, 0);
        close(c->fd);
        c->fd = -1;
        c->state = CLOSED;
    }
}

/* The transport is over; step() tells the player. */
static void die(tcp_transport *t, const char *why) {
    if (t->dead[0] == '\0')
        snprintf(t->dead, sizeof t->dead, "%s", why);
}

/* Socket bound to the primary path, or -1 with a phrase. */
static int open_socket(const tcp_transport *t, char *error) {
    int domain = t->server.family == 6 ? AF_INET6 : AF_INET;
    int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, t->mptcp ? IPPROTO_MPTCP : 0);
    if (fd < 0) {
        snprintf(error, PLAYER_ERROR_BYTES, "%s: %s%s", t->mptcp ? "no MPTCP socket" : "no socket", strerror(errno),
                 t->mptcp ? " (the kernel needs CONFIG_MPTCP and sysctl net.mptcp.enabled=1)" : "");
        return -1;
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_storage local;
    socklen_t len = net_to_sockaddr(&t->paths[0].local, &local);
    if (bind(fd, (struct sockaddr *)&local, len) != 0) {
        char text[64];
        snprintf(error, PLAYER_ERROR_BYTES, "cannot use local address %s of path %s: %s",
                 xl_addr_format(&t->paths[0].local, text, sizeof text), t->paths[0].name, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

/* False with a phrase when there is no socket; whatever else goes wrong shows in step(). */
static bool start_connection(tcp_transport *t, connection *c, uint64_t now, char *error) {
    int fd = open_socket(t, error);
    if (fd < 0)
        return false;
    struct sockaddr_storage remote;
    socklen_t len = net_to_sockaddr(&t->server, &remote);
    c->fd = fd;
    c->events = 0;
    c->state = CONNECTING;
    c->connect_deadline = now + CONNECT_LIMIT_US;
    if (connect(fd, (struct sockaddr *)&remote, len) != 0 && errno != EINPROGRESS)
        die(t, strerror(errno));
    watch(t, c, EPOLLOUT);
    return true;
}

static void tcp_close(player_transport *handle, uint64_t now) {
    (void)now;
    tcp_transport *t = from_handle(handle);
    for (unsigned i = 0; i < t->count; i++)
        close_connection(t, &t->connections[i]);
    free(t);
}

static player_transport *create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                uint64_t now, bool mptcp, char *error) {
    if (config->paths[0].local.family != config->server.family) {
        snprintf(error, PLAYER_ERROR_BYTES, "path %s and the server are not of the same address family",
                 config->paths[0].name);
        return NULL;
    }
    if (strlen(config->target) > HTTP1_MAX_TARGET_BYTES) {
        snprintf(error, PLAYER_ERROR_BYTES, "the URL is longer than %d bytes", HTTP1_MAX_TARGET_BYTES);
        return NULL;
    }
    tcp_transport *t = calloc(1, sizeof *t + config->concurrency * sizeof(connection));
    if (!t) {
        snprintf(error, PLAYER_ERROR_BYTES, "out of memory");
        return NULL;
    }
    t->mptcp = mptcp;
    t->cb = *callbacks;
    t->server = config->server;
    t->path_count = config->path_count;
    memcpy(t->paths, config->paths, config->path_count * sizeof *config->paths);
    snprintf(t->target, sizeof t->target, "%s", config->target);
    snprintf(t->authority, sizeof t->authority, "%s", config->authority);
    t->next_sample = now + SAMPLE_INTERVAL_US;
    t->count = config->concurrency;
    for (unsigned i = 0; i < t->count; i++) {
        if (!start_connection(t, &t->connections[i], now, error)) {
            tcp_close((player_transport *)t, now);
            return NULL;
        }
    }
    return (player_transport *)t;
}

static player_transport *tcp_create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                    uint64_t now, char *error) {
    return create(config, callbacks, now, false, error);
}

static player_transport *mptcp_create(const player_transport_config *config,
                                      const player_transport_callbacks *callbacks, uint64_t now, char *error) {
    return create(config, callbacks, now, true, error);
}

static connection *find_connection(tcp_transport *t, connection_state state) {
    for (unsigned i = 0; i < t->count; i++)
        if (t->connections[i].state == state && !t->connections[i].has_request)
            return &t->connections[i];
    return NULL;
}

static bool tcp_request(player_transport *handle, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    tcp_transport *t = from_handle(handle);
    if (t->over || t->dead[0] != '\0')
        return false;
    connection *c = find_connection(t, IDLE);
    if (!c) {
        c = find_connection(t, CLOSED); /* the server has closed it while it was idle */
        char error[PLAYER_ERROR_BYTES];
        if (!c)
            return false;
        if (!start_connection(t, c, now, error)) {
            die(t, error);
            return false;
        }
    } else {
        c->state = BUSY;
    }
    c->has_request = true;
    c->id = id;
    c->first = first;
    c->last = last;
    c->out_len =
        (size_t)snprintf(c->out, sizeof c->out, "GET %s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%llu-%llu\r\n\r\n",
                         t->target, t->authority, (unsigned long long)first, (unsigned long long)last);
    c->out_sent = c->head_len = c->scanned = 0;
    c->head_done = false;
    c->received = 0;
    return true;
}

static void tcp_cancel(player_transport *handle, uint64_t id, uint64_t now) {
    (void)now;
    tcp_transport *t = from_handle(handle);
    for (unsigned i = 0; i < t->count; i++) {
        connection *c = &t->connections[i];
        if (c->has_request && c->id == id) {
            c->has_request = false;
            close_connection(t, c);
        }
    }
}

static void fail_request(tcp_transport *t, connection *c, const char *message, uint64_t now) {
    c->has_request = false;
    close_connection(t, c);
    t->cb.failed(t->cb.user, c->id, message, now);
}

/* Does the response's head promise just the bytes that were asked for? */
static bool right_range(const connection *c, const http1_response *r) {
    uint64_t size = c->last - c->first + 1;
    if (!r->has_content_length || r->content_length != size)
        return false;
    return r->status == 200 ? c->first == 0
                            : r->has_content_range && r->range_first == c->first && r->range_last == c->last;
}

static void take_body(tcp_transport *t, connection *c, const uint8_t *data, size_t len, uint64_t now) {
    uint64_t size = c->last - c->first + 1;
    if (len > size - c->received) {
        fail_request(t, c, "more bytes than Content-Length says", now);
        return;
    }
    if (len > 0) {
        uint64_t offset = c->received;
        c->received += len;
        t->cb.data(t->cb.user, c->id, offset, data, len, now);
    }
    if (c->received == size) {
        c->has_request = false;
        c->state = IDLE;
        if (!c->keep_alive)
            close_connection(t, c);
        t->cb.done(t->cb.user, c->id, now);
    }
}

/* Collects the response's head, then hands its body on. */
static void take_bytes(tcp_transport *t, connection *c, const uint8_t *data, size_t len, uint64_t now) {
    if (c->head_done) {
        take_body(t, c, data, len, now);
        return;
    }
    size_t room = sizeof c->head - c->head_len;
    size_t take = len < room ? len : room;
    memcpy(c->head + c->head_len, data, take);
    size_t before = c->head_len;
    c->head_len += take;
    http1_response r;
    ssize_t head = http1_parse_response(c->head, c->head_len, &c->scanned, &r);
    if (head == 0)
        return;
    if (head < 0) {
        fail_request(t, c, "not an HTTP/1.1 response that this player understands", now);
        return;
    }
    if (r.status != 200 && r.status != 206) {
        char message[32];
        snprintf(message, sizeof message, "status %d", r.status);
        fail_request(t, c, message, now);
        return;
    }
    if (!right_range(c, &r)) {
        fail_request(t, c, "the response is not the range that was asked for", now);
        return;
    }
    c->head_done = true;
    c->keep_alive = r.keep_alive;
    size_t used = (size_t)head - before; /* of this piece */
    take_body(t, c, data + used, len - used, now);
}

static void read_all(tcp_transport *t, connection *c, uint64_t now) {
    uint8_t buf[READ_BYTES];
    for (int i = 0; i < READS_PER_STEP && (c->state == BUSY || c->state == IDLE); i++) {
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            int why = n < 0 ? errno : 0;
            bool busy = c->state == BUSY;
            close_connection(t, c);
            if (busy)
                die(t, why != 0 ? strerror(why) : "the server closed the connection within a response");
            return;
        }
        if (c->state == IDLE) {
            close_connection(t, c); /* bytes that nobody asked for */
            return;
        }
        take_bytes(t, c, buf, (size_t)n, now);
    }
}

static void write_request(tcp_transport *t, connection *c) {
    while (c->out_sent < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                die(t, strerror(errno));
            break;
        }
        c->out_sent += (size_t)n;
    }
}

static void finish_connecting(tcp_transport *t, connection *c, uint64_t now) {
    int error = 0;
    socklen_t len = sizeof error;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        die(t, strerror(error));
    } else if (getpeername(c->fd, (struct sockaddr *)&peer, &peer_len) == 0) {
        c->state = c->has_request ? BUSY : IDLE;
        if (!t->connected) {
            t->connected = true;
            t->cb.connected(t->cb.user, now);
        }
    } else if (now >= c->connect_deadline) {
        die(t, "no answer from the server");
    }
}

static void step_connection(tcp_transport *t, connection *c, uint64_t now) {
    if (c->state == CONNECTING)
        finish_connecting(t, c, now);
    if (c->state == BUSY)
        write_request(t, c);
    if (c->state == BUSY || c->state == IDLE)
        read_all(t, c, now);
    if (c->state == CONNECTING)
        watch(t, c, EPOLLOUT);
    else if (c->state != CLOSED)
        watch(t, c, EPOLLIN | (c->state == BUSY && c->out_sent < c->out_len ? EPOLLOUT : 0u));
}

static void tcp_step(player_transport *handle, uint64_t now) {
    tcp_transport *t = from_handle(handle);
    if (t->over)
        return;
    for (unsigned i = 0; i < t->count && t->dead[0] == '\0'; i++)
        step_connection(t, &t->connections[i], now);
    if (t->dead[0] != '\0') {
        t->over = true;
        for (unsigned i = 0; i < t->count; i++)
            close_connection(t, &t->connections[i]);
        t->cb.closed(t->cb.user, t->dead, now);
        return;
    }
    if (now >= t->next_sample) {
        for (unsigned i = 0; i < t->count; i++)
            sample(t, &t->connections[i]);
        t->next_sample = now + SAMPLE_INTERVAL_US;
    }
}

static uint64_t tcp_next_timeout(const player_transport *handle) {
    const tcp_transport *t = (const tcp_transport *)handle;
    if (t->over)
        return XL_NEVER;
    uint64_t next = t->dead[0] != '\0' ? 0 : t->next_sample;
    for (unsigned i = 0; i < t->count; i++) {
        const connection *c = &t->connections[i];
        if (c->state == CONNECTING && c->connect_deadline < next)
            next = c->connect_deadline;
    }
    return next;
}

/* The path that a flow's local address belongs to. */
static size_t path_of(const tcp_transport *t, const tcp_flow *flow) {
    for (size_t i = 0; i < t->path_count; i++)
        if (net_same_ip(&t->paths[i].local, &flow->local))
            return i;
    return 0;
}

static void sample_all(tcp_transport *t) {
    for (unsigned i = 0; i < t->count; i++)
        sample(t, &t->connections[i]);
}

static void tcp_path_stats(player_transport *handle, player_path_stats *stats) {
    tcp_transport *t = from_handle(handle);
    sample_all(t);
    memset(stats, 0, t->path_count * sizeof *stats);
    for (size_t i = 0; i < t->stats.count; i++) {
        const tcp_flow *flow = &t->stats.flows[i];
        player_path_stats *path = &stats[path_of(t, flow)];
        path->bytes_sent += flow->bytes_sent;
        path->bytes_received += flow->bytes_received;
        path->srtt_us = flow->srtt_us > 0 ? flow->srtt_us : path->srtt_us;
    }
}

static json_t *tcp_summary(player_transport *handle) {
    tcp_transport *t = from_handle(handle);
    sample_all(t);
    json_t *flows = json_array();
    for (size_t i = 0; i < t->stats.count; i++) {
        const tcp_flow *flow = &t->stats.flows[i];
        char local[64], remote[64];
        json_array_append_new(flows,
                              json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "path", t->paths[path_of(t, flow)].name,
                                        "local", xl_addr_format(&flow->local, local, sizeof local), "remote",
                                        xl_addr_format(&flow->remote, remote, sizeof remote), "bytes_sent",
                                        (json_int_t)flow->bytes_sent, "bytes_received",
                                        (json_int_t)flow->bytes_received, "srtt_us", (json_int_t)flow->srtt_us));
    }
    json_t *out = json_pack("{s:i, s:o}", "connections", (int)t->count, t->mptcp ? "subflows" : "flows", flows);
    if (t->mptcp) {
        json_object_set_new(out, "subflow_count", json_integer((json_int_t)t->stats.count));
        json_object_set_new(out, "fell_back_to_tcp", json_boolean(t->stats.fallbacks > 0));
    }
    return out;
}

const player_transport_ops player_transport_tcp = {
    .name = "tcp",
    .create = tcp_create,
    .request = tcp_request,
    .cancel = tcp_cancel,
    .step = tcp_step,
    .next_timeout = tcp_next_timeout,
    .path_stats = tcp_path_stats,
    .summary = tcp_summary,
    .close = tcp_close,
};

const player_transport_ops player_transport_mptcp = {
    .name = "mptcp",
    .create = mptcp_create,
    .request = tcp_request,
    .cancel = tcp_cancel,
    .step = tcp_step,
    .next_timeout = tcp_next_timeout,
    .path_stats = tcp_path_stats,
    .summary = tcp_summary,
    .close = tcp_close,
};
