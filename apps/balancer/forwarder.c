#include "balancer/forwarder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/net.h"
#include "xlink/udp.h"

#define BATCH               32
#define ROUNDS              8    /* batches per socket and call, so that other sockets are not delayed */
#define DATAGRAM_BYTES      9216 /* for jumbo frames; longer datagrams of servers are dropped */
#define SOCKET_BUFFER_BYTES (4 * 1024 * 1024)
#define NEW_TIMEOUT_US      UINT64_C(15000000) /* longer than a handshake, which may take 10 s */
#define EVENTS              64

struct forwarder {
    int epoll;
    xl_udp *front;
    forwarder_options options;
    health health;
    int probe[LB_SERVERS_MAX]; /* sockets; -1: none */
    router *router;
    flows *flows;
    forwarder_stats stats;
    struct epoll_event events[EVENTS]; /* of the current step; what of closed flows is set to NULL */
    int event_count;
    uint64_t now; /* of the current step */
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    uint8_t data[BATCH][DATAGRAM_BYTES];
};

/* ---- Sockets ---- */

static int open_socket(uint8_t family) {
    int size = SOCKET_BUFFER_BYTES;
    int fd = socket(family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return fd;
}

static bool watch(const forwarder *w, int fd, void *what) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool open_front(forwarder *w, const xl_addr *listen, xl_addr *bound, char *error) {
    char text[64];
    w->front = xl_udp_new();
    int rv = w->front ? xl_udp_add_socket(w->front, listen, bound) : -errno;
    if (rv < 0)
        return error_set(error, LB_ERROR_BYTES, "cannot listen on %s: %s", xl_addr_format(listen, text, sizeof text),
                         strerror(-rv));
    return watch(w, xl_udp_fd(w->front), w);
}

static int try_to_server(const forwarder *w, size_t server, void *what) {
    struct sockaddr_storage sa;
    const xl_addr *address = &router_file(w->router)->server[server].address;
    socklen_t len = net_to_sockaddr(address, &sa);
    int fd = open_socket(address->family);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&sa, len) == 0 && watch(w, fd, what)))
        return fd;
    close(fd);
    return -1;
}

/* Returns a socket that is connected to the server; -1: none. If the process has no descriptor left, evicts a new flow
 * other than `keep`. */
static int open_to_server(forwarder *w, size_t server, void *what, const flow *keep) {
    int fd = try_to_server(w, server, what);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && flows_evict(w->flows, keep))
        fd = try_to_server(w, server, what);
    return fd;
}

static void on_flow_closed(void *user, flow *f) {
    forwarder *w = user;
    descriptor_close(&f->fd);
    for (int i = 0; i < w->event_count; i++)
        if (w->events[i].data.ptr == f)
            w->events[i].data.ptr = NULL;
}

/* ---- Servers going up and down ---- */

static void on_change(forwarder *w, size_t server, bool has_changed, uint64_t now) {
    if (!has_changed)
        return;
    bool is_down = w->health.server[server].is_down;
    router_set_down(w->router, server, is_down);
    if (w->options.changed)
        w->options.changed(w->options.user, &router_file(w->router)->server[server], !is_down, now);
}

static void on_refused(forwarder *w, size_t server, uint64_t now) {
    on_change(w, server, health_refuse(&w->health, server), now);
}

static void on_heard(forwarder *w, size_t server, uint64_t now) {
    on_change(w, server, health_hear(&w->health, server), now);
}

static void from_probed(forwarder *w, size_t server, uint64_t now) {
    uint8_t data[DATAGRAM_BYTES];
    ssize_t n = recv(w->probe[server], data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && errno == ECONNREFUSED)
        on_refused(w, server, now);
    else if (n > 0 && health_is_answer(&w->health, server, data, (size_t)n))
        on_heard(w, server, now);
}

/* Sends a probe if it is due. If there is no socket or no random bytes for it, the server counts as up. */
static void ask(forwarder *w, size_t server, uint64_t now) {
    uint8_t probe[HEALTH_PROBE_BYTES], random[2 * HEALTH_ID_BYTES];
    int *fd = &w->probe[server];
    if (*fd < 0)
        *fd = open_to_server(w, server, fd, NULL);
    bool can_ask = *fd >= 0 && getrandom(random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random;
    if (!health_probe(&w->health, server, random, now, probe))
        return;
    if (!can_ask)
        on_heard(w, server, now);
    else if (send(*fd, probe, sizeof probe, MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED)
        on_refused(w, server, now);
}

static void ask_servers(forwarder *w, uint64_t now) {
    for (size_t i = 0; health_next(&w->health) <= now && i < w->health.count; i++) {
        on_change(w, i, health_check(&w->health, i, now), now);
        if (w->health.server[i].probe_at <= now)
            ask(w, i, now);
    }
}

static void close_probes(forwarder *w) {
    for (size_t i = 0; i < LB_SERVERS_MAX; i++)
        descriptor_close(&w->probe[i]);
}

/* ---- Datagrams ---- */

static flow *flow_for(forwarder *w, const xl_addr *client, const xl_addr *local, size_t server, uint64_t now) {
    flow *f = flows_find(w->flows, client, local, server);
    if (!f && (f = flows_add(w->flows, client, local, server, now)) && (f->fd = open_to_server(w, server, f, f)) < 0) {
        flows_remove(w->flows, f);
        f = NULL;
    }
    return f;
}

/* False: an ICMP error of an earlier datagram, the server's port is closed, prevented sending. */
static bool forward(forwarder *w, route r, const xl_datagram *d, const uint8_t *data) {
    flow *f = flow_for(w, &d->remote, &d->local, r.server, w->now);
    if (!f) {
        w->stats.no_flow++;
        return true;
    }
    flows_used_by_client(w->flows, f, r.kind == ROUTE_BY_CID, w->now);
    bool sent = send(f->fd, data, d->len, MSG_NOSIGNAL) >= 0;
    if (!sent && errno == ECONNREFUSED) {
        on_refused(w, r.server, w->now);
        return false;
    }
    w->stats.to_server[r.server] += sent;
    w->stats.unsent += !sent;
    return true;
}

static void from_client(void *user, const xl_datagram *d, uint8_t *data) {
    forwarder *w = user;
    route r = router_route(w->router, &d->remote, data, d->len, w->now);
    w->stats.kinds[r.kind]++;
    if (r.kind != ROUTE_BY_CID && r.kind != ROUTE_BY_HASH)
        return;
    if (forward(w, r, d, data))
        return;
    /* Once more, perhaps to another server now. */
    r = router_route(w->router, &d->remote, data, d->len, w->now);
    w->stats.unsent += !forward(w, r, d, data);
}

static int receive(forwarder *w, int fd) {
    for (size_t i = 0; i < BATCH; i++) {
        w->parts[i] = (struct iovec){w->data[i], DATAGRAM_BYTES};
        w->messages[i].msg_hdr = (struct msghdr){.msg_iov = &w->parts[i], .msg_iovlen = 1};
    }
    return recvmmsg(fd, w->messages, BATCH, MSG_DONTWAIT, NULL);
}

static void to_client(forwarder *w, const flow *f, const struct mmsghdr *m) {
    const xl_datagram d = {.local = f->local, .remote = f->client, .len = m->msg_len};
    const bool can_send = !(m->msg_hdr.msg_flags & MSG_TRUNC) && xl_udp_has_room(w->front);
    if (can_send)
        xl_udp_queue(w->front, &d, m->msg_hdr.msg_iov->iov_base);
    w->stats.from_server[f->server] += can_send;
    w->stats.unsent += !can_send;
}

static void from_server(forwarder *w, flow *f, uint64_t now) {
    for (int round = 0, n = BATCH; round < ROUNDS && n == BATCH; round++) {
        n = receive(w, f->fd);
        if (n < 0 && errno == ECONNREFUSED)
            on_refused(w, f->server, now);
        for (int i = 0; i < n; i++)
            to_client(w, f, &w->messages[i]);
        if (n > 0) {
            flows_used_by_server(w->flows, f, now);
            on_heard(w, f->server, now);
        }
    }
}

void forwarder_step(forwarder *w, uint64_t now) {
    int n = epoll_wait(w->epoll, w->events, EVENTS, 0);
    w->event_count = n > 0 ? n : 0;
    w->now = now;
    for (int i = 0; i < w->event_count; i++) {
        void *what = w->events[i].data.ptr;
        size_t server = 0;
        while (server < w->health.count && what != &w->probe[server])
            server++;
        if (what == w)
            xl_udp_receive_each(w->front, from_client, w);
        else if (server < w->health.count)
            from_probed(w, server, now);
        else if (what)
            from_server(w, what, now);
    }
    xl_udp_send(w->front);
    w->event_count = 0;
}

/* ---- Life ---- */

forwarder *forwarder_new(const forwarder_options *o, const lb_file *file, xl_addr *bound, uint64_t now, char *error) {
    forwarder *w = calloc(1, sizeof *w);
    snprintf(error, LB_ERROR_BYTES, "out of memory");
    if (!w)
        return NULL;
    w->options = *o;
    for (size_t i = 0; i < LB_SERVERS_MAX; i++)
        w->probe[i] = -1;
    health_init(&w->health, o->probe_interval_us, file->server_count, now);
    xl_static_keys keys = {0};
    bool has_keys = xl_static_keys_from(file->secret, &keys) == 0;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->router = router_new(file);
    w->flows = flows_new(o->max_flows, NEW_TIMEOUT_US < o->idle_timeout_us ? NEW_TIMEOUT_US : o->idle_timeout_us,
                         o->idle_timeout_us, keys.balancer[1], on_flow_closed, w);
    if (has_keys && w->epoll >= 0 && w->router && w->flows && open_front(w, &o->listen, bound, error))
        return w;
    forwarder_free(w);
    return NULL;
}

void forwarder_free(forwarder *w) {
    if (!w)
        return;
    flows_free(w->flows);
    router_free(w->router);
    close_probes(w);
    xl_udp_free(w->front);
    descriptor_close(&w->epoll);
    free(w);
}

int forwarder_fd(const forwarder *w) {
    return w->epoll;
}

uint64_t forwarder_tick(forwarder *w, uint64_t now) {
    ask_servers(w, now);
    uint64_t a = flows_expire(w->flows, now), b = health_next(&w->health);
    return a < b ? a : b;
}

/* Moves counts to the servers' new indices. */
static void move_counts(uint64_t counts[LB_SERVERS_MAX], const size_t moved[], size_t servers) {
    uint64_t old[LB_SERVERS_MAX];
    memcpy(old, counts, sizeof old);
    memset(counts, 0, sizeof old);
    for (size_t i = 0; i < servers; i++)
        if (moved[i] != SIZE_MAX)
            counts[moved[i]] = old[i];
}

bool forwarder_update(forwarder *w, const lb_file *file, uint64_t now) {
    size_t moved[LB_SERVERS_MAX], servers = router_file(w->router)->server_count;
    if (!router_update(w->router, file, moved))
        return false;
    flows_move(w->flows, moved);
    move_counts(w->stats.to_server, moved, servers);
    move_counts(w->stats.from_server, moved, servers);
    close_probes(w);
    health_move(&w->health, moved, file->server_count, now);
    for (size_t i = 0; i < file->server_count; i++)
        router_set_down(w->router, i, w->health.server[i].is_down);
    return true;
}

const lb_file *forwarder_file(const forwarder *w) {
    return router_file(w->router);
}

void forwarder_get_stats(const forwarder *w, forwarder_stats *out, flows_stats *flow_stats) {
    xl_udp_stats front;
    xl_udp_get_stats(w->front, &front);
    *out = w->stats;
    out->unsent += front.dark;
    flows_get_stats(w->flows, flow_stats);
}
