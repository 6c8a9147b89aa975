/* A relay over the kernel's TCP or MPTCP, as a control. Each local connection becomes one TCP connection, bound to the
 * primary path's address. With MPTCP the kernel adds subflows as configured by `ip mptcp endpoint`. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/net.h"
#include "base/tcp_stats.h"
#include "peers/relay/relay.h"

#define PROGRAM    "tcp-relay"
#define BACKLOG    64
#define MAX_EVENTS 64
#define SAMPLE_US  UINT64_C(1000000)

typedef struct { /* TCP connection of a local connection */
    bool is_open;
    int fd;
    bool has_sent_end;
} item;

typedef struct {
    relay_options options;
    bool mptcp;
    const char *cc; /* one of `controllers` */
    relay *relay;
    int epoll, listener; /* for the TCP connections; listener: server only, else -1 */
    tcp_stats stats;     /* client */
    uint64_t sampled_at;
} stack;

static int last_error(int fd) {
    int error = 0;
    socklen_t len = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

/* ---- connections ---- */

static int new_socket(const stack *t, const xl_addr *of, char *error) {
    const int fd = socket(of->family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          t->mptcp ? IPPROTO_MPTCP : 0);
    if (fd < 0)
        snprintf(error, RELAY_ERROR_BYTES, "There is no %s socket: %s%s.", t->mptcp ? "MPTCP" : "TCP", strerror(errno),
                 t->mptcp ? " (the kernel needs CONFIG_MPTCP and net.mptcp.enabled=1)" : "");
    return fd;
}

/* Takes ownership of fd. False: failed; the local connection has ended too. */
static bool carry(stack *t, relay_stream *local, int fd) {
    const int one = 1;
    item *i = relay_state(local);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = local};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *i = (item){.is_open = true, .fd = fd};
    if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return true;
    relay_abort(local);
    return false;
}

static void sample(stack *t, const item *i) {
    tcp_stats_sample(&t->stats, i->fd, t->mptcp);
}

static void on_release(void *user, relay_stream *local) {
    stack *t = user;
    const item *i = relay_state(local);
    if (!i->is_open)
        return;
    if (!t->options.is_server)
        sample(t, i);
    close(i->fd);
}

/* Makes close() reset the connection. */
static void reset(const item *i) {
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(i->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void abort_both(relay_stream *local) {
    reset(relay_state(local));
    relay_abort(local);
}

/* ---- bytes ---- */

static bool would_wait(void) {
    return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
}

/* Sends local bytes on the connection. False: it has failed, or the end was sent, so that `local` may be gone. */
static bool send_bytes(relay_stream *local) {
    item *i = relay_state(local);
    const uint8_t *data;
    bool fin = false;
    size_t len;
    while ((len = relay_peek(local, &data, &fin)) > 0) {
        const ssize_t n = send(i->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && !would_wait()) {
            abort_both(local);
            return false;
        }
        if (n < 0)
            return true;
        relay_consume(local, (size_t)n, false);
    }
    if (!fin || i->has_sent_end || shutdown(i->fd, SHUT_WR) != 0)
        return true;
    i->has_sent_end = true;
    relay_consume(local, 0, true);
    return false;
}

/* Delivers received bytes to the local end. May end it. */
static void receive_bytes(relay_stream *local) {
    const item *i = relay_state(local);
    uint8_t buf[16384];
    size_t room;
    while ((room = relay_room(local)) > 0) {
        const ssize_t n = recv(i->fd, buf, room < sizeof buf ? room : sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            relay_push(local, buf, (size_t)n);
            continue;
        }
        if (n == 0)
            relay_finish(local);
        else if (!would_wait())
            abort_both(local);
        return;
    }
}

static void on_event(relay_stream *local, uint32_t events) {
    if ((events & EPOLLERR) && last_error(((item *)relay_state(local))->fd) != 0)
        abort_both(local);
    else if (!(events & EPOLLOUT) || send_bytes(local))
        receive_bytes(local);
}

/* ---- operations of relay_stack ---- */

static void on_open(void *user, relay_stream *local) {
    stack *t = user;
    char error[RELAY_ERROR_BYTES];
    struct sockaddr_storage from, to;
    const socklen_t from_len = net_to_sockaddr(&t->options.paths[0].local, &from);
    const socklen_t to_len = net_to_sockaddr(&t->options.server, &to);
    const int fd = new_socket(t, &t->options.server, error);
    if (fd < 0) {
        relay_close(t->relay, error, true);
        return;
    }
    if (bind(fd, (struct sockaddr *)&from, from_len) != 0 ||
        (connect(fd, (struct sockaddr *)&to, to_len) != 0 && errno != EINPROGRESS)) {
        snprintf(error, sizeof error, "cannot connect: %s", strerror(errno));
        close(fd);
        relay_close(t->relay, error, true);
        return;
    }
    (void)carry(t, local, fd);
}

static void on_readable(void *user, relay_stream *local) {
    (void)user;
    (void)send_bytes(local);
}

static void on_writable(void *user, relay_stream *local) {
    (void)user;
    receive_bytes(local);
}

static void on_gone(void *user, relay_stream *local) {
    const item *i = relay_state(local);
    (void)user;
    if (i->is_open)
        reset(i);
}

static void accept_connections(stack *t) {
    int fd;
    while ((fd = relay_accept(t->relay, t->listener)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, t->cc, (socklen_t)strlen(t->cc)); /* also for MPTCP's joins */
        relay_stream *local = relay_connect(t->relay);
        if (local)
            (void)carry(t, local, fd);
        else
            close(fd);
    }
}

/* Returns the stream at this address; NULL: none, or it ended with an earlier event. */
static relay_stream *find_stream(const stack *t, const void *of) {
    relay_stream *local = relay_first(t->relay);
    while (local && local != of)
        local = relay_next(local);
    return local;
}

static void step(void *user, uint64_t now) {
    stack *t = user;
    struct epoll_event events[MAX_EVENTS];
    const int n = epoll_wait(t->epoll, events, MAX_EVENTS, 0);
    for (int k = 0; k < n; k++) {
        relay_stream *local = find_stream(t, events[k].data.ptr);
        if (local)
            on_event(local, events[k].events);
        else if (events[k].data.ptr == &t->listener)
            accept_connections(t);
    }
    if (t->options.is_server || now < t->sampled_at + SAMPLE_US)
        return;
    t->sampled_at = now;
    for (relay_stream *local = relay_first(t->relay); local; local = relay_next(local))
        sample(t, relay_state(local));
}

static uint64_t next_timeout(void *user) {
    (void)user;
    return XL_NEVER;
}

/* Bytes are payload, as counted by the kernel. */
static void path(void *user, size_t k, relay_path_facts *out) {
    const stack *t = user;
    for (size_t i = 0; i < t->stats.count; i++) {
        const tcp_flow *flow = &t->stats.flows[i];
        if (!net_same_ip(&t->options.paths[k].local, &flow->local))
            continue;
        out->state = "active";
        out->bytes_sent += flow->bytes_sent;
        out->bytes_received += flow->bytes_received;
        out->srtt_us = flow->srtt_us > 0 ? flow->srtt_us : out->srtt_us;
    }
}

/* ---- the program ---- */

static const char *kernel_name(const char *controller) {
    return strcmp(controller, "newreno") == 0 ? "reno" : controller;
}

static bool start_listening(stack *t, char *error) {
    const xl_addr *at = &t->options.listen;
    struct sockaddr_storage sa;
    socklen_t len = net_to_sockaddr(at, &sa);
    t->listener = new_socket(t, at, error);
    if (t->listener < 0)
        return false;
    const int one = 1;
    setsockopt(t->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (setsockopt(t->listener, IPPROTO_TCP, TCP_CONGESTION, t->cc, (socklen_t)strlen(t->cc)) != 0)
        return error_set(error, RELAY_ERROR_BYTES, "The kernel does not offer the congestion controller %s: %s.", t->cc,
                         strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &t->listener};
    if (bind(t->listener, (struct sockaddr *)&sa, len) != 0 || listen(t->listener, BACKLOG) != 0 ||
        getsockname(t->listener, (struct sockaddr *)&sa, &len) != 0 ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->listener, &event) != 0)
        return error_set(error, RELAY_ERROR_BYTES, "Cannot listen there: %s.", strerror(errno));
    return net_from_sockaddr((struct sockaddr *)&sa, &t->options.listen);
}

static bool start(stack *t, char *error) {
    static const relay_stack ops = {.state_bytes = sizeof(item),
                                    .open = on_open,
                                    .readable = on_readable,
                                    .writable = on_writable,
                                    .gone = on_gone,
                                    .release = on_release,
                                    .next_timeout = next_timeout,
                                    .step = step,
                                    .path = path};
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll < 0)
        return error_set(error, RELAY_ERROR_BYTES, "Cannot wait for events: %s.", strerror(errno));
    if (t->options.is_server && !start_listening(t, error))
        return false;
    t->relay = relay_new(&t->options, &ops, t, error);
    return t->relay && relay_watch(t->relay, t->epoll);
}

int main(int argc, char **argv) {
    static const char *const controllers[] = {"cubic", "newreno", "bbr", NULL};
    static const setting rows[] = {
        {"mptcp", SETTING_FLAG, SETTING_FIELD(stack, mptcp), .sides = SETTING_OF_SERVER | SETTING_OF_PLAYER,
         .help = "MPTCP in place of TCP."},
        {"cc", SETTING_WORD, SETTING_FIELD(stack, cc), .words = controllers, .sides = SETTING_OF_SERVER,
         .fallback = "cubic", .help = "Congestion controller."},
        {0},
    };
    static stack t = {.cc = "cubic", .epoll = -1, .listener = -1};
    char error[SETTINGS_ERROR_BYTES] = "";
    const relay_own_options own = {.rows = rows, .into = &t};
    bool ok = relay_options_read(argc, argv, &own, &t.options, error);
    if (t.options.help)
        return 0;
    t.cc = kernel_name(t.cc);
    ok = ok && start(&t, error);
    const int status = ok ? relay_run(t.relay) : 2;
    if (!ok)
        error_say(PROGRAM, "%s", error);
    relay_free(t.relay);
    descriptor_close(&t.listener);
    descriptor_close(&t.epoll);
    return status;
}
