/* A relay over the kernel's TCP or MPTCP: a control. Each local connection becomes one TCP connection, bound to the
 * primary path's address. With MPTCP the kernel adds subflows as its endpoints (`ip mptcp`) say. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/net.h"
#include "base/tcp_stats.h"
#include "peers/relay/relay.h"

#define PROGRAM    "tcp-relay"
#define BACKLOG    64
#define MAX_EVENTS 64
#define SAMPLE_US  UINT64_C(1000000)

typedef struct item item;
struct item { /* a local connection and the TCP connection that carries it */
    item *next;
    relay_stream *local;
    int fd;
    bool has_sent_end;
};

typedef struct {
    relay_options options;
    bool mptcp;
    const char *cc; /* one of `controllers` */
    relay *relay;
    int epoll, listener; /* of the carrying side; the listener is the server's, else -1 */
    item *items;
    tcp_stats stats; /* the client's */
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

/* Takes the descriptor. */
static item *item_new(stack *t, relay_stream *local, int fd) {
    const int one = 1;
    item *i = calloc(1, sizeof *i);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = i};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!i || epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(i);
        close(fd);
        return NULL;
    }
    *i = (item){.next = t->items, .local = local, .fd = fd};
    t->items = i;
    relay_set_user(local, i);
    return i;
}

static void sample(stack *t, const item *i) {
    if (t->mptcp)
        tcp_stats_sample_mptcp(&t->stats, i->fd);
    else
        tcp_stats_sample_tcp(&t->stats, i->fd);
}

static void item_free(stack *t, item *of) {
    item **at = &t->items;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    if (!t->options.is_server)
        sample(t, of);
    close(of->fd);
    free(of);
}

/* The other end is told by a reset. */
static void reset(item *i) {
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(i->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void abort_item(stack *t, item *i) {
    reset(i);
    relay_abort(i->local);
    item_free(t, i);
}

/* ---- bytes ---- */

static bool would_wait(void) {
    return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
}

/* Local bytes into the connection. False: it has failed, or the item is gone. */
static bool send_bytes(stack *t, item *i) {
    const uint8_t *data;
    bool fin = false;
    size_t len;
    while ((len = relay_peek(i->local, &data, &fin)) > 0) {
        const ssize_t n = send(i->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && !would_wait()) {
            abort_item(t, i);
            return false;
        }
        if (n < 0)
            return true;
        relay_consume(i->local, (size_t)n, false);
    }
    if (!fin || i->has_sent_end || shutdown(i->fd, SHUT_WR) != 0)
        return true;
    i->has_sent_end = true;
    relay_consume(i->local, 0, true); /* may free the item */
    return false;
}

/* Bytes of the connection to the local end. May free the item. */
static void receive_bytes(stack *t, item *i) {
    uint8_t buf[16384];
    size_t room;
    while ((room = relay_room(i->local)) > 0) {
        const ssize_t n = recv(i->fd, buf, room < sizeof buf ? room : sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            relay_push(i->local, buf, (size_t)n);
            continue;
        }
        if (n == 0)
            relay_finish(i->local);
        else if (!would_wait())
            abort_item(t, i);
        return;
    }
}

static void on_event(stack *t, item *i, uint32_t events) {
    if ((events & EPOLLERR) && last_error(i->fd) != 0)
        abort_item(t, i);
    else if (!(events & EPOLLOUT) || send_bytes(t, i))
        receive_bytes(t, i);
}

/* ---- calls of the relay ---- */

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
    if (!item_new(t, local, fd))
        relay_abort(local);
}

static void on_readable(void *user, relay_stream *local) {
    (void)send_bytes(user, relay_user(local));
}

static void on_writable(void *user, relay_stream *local) {
    receive_bytes(user, relay_user(local));
}

static void on_gone(void *user, relay_stream *local) {
    item *i = relay_user(local);
    reset(i);
    item_free(user, i);
}

static void on_ended(void *user, relay_stream *local) {
    item_free(user, relay_user(local));
}

static void accept_connections(stack *t) {
    int fd;
    while ((fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, t->cc, (socklen_t)strlen(t->cc)); /* of MPTCP's joins too */
        relay_stream *local = relay_connect(t->relay);
        if (!local)
            close(fd);
        else if (!item_new(t, local, fd))
            relay_abort(local);
    }
}

static void step(void *user, uint64_t now) {
    stack *t = user;
    struct epoll_event events[MAX_EVENTS];
    const int n = epoll_wait(t->epoll, events, MAX_EVENTS, 0);
    for (int k = 0; k < n; k++) {
        item *i = t->items;
        while (i && i != events[k].data.ptr) /* it may have ended with an earlier event */
            i = i->next;
        if (i)
            on_event(t, i, events[k].events);
        else if (events[k].data.ptr == &t->listener)
            accept_connections(t);
    }
    if (t->options.is_server || now < t->sampled_at + SAMPLE_US)
        return;
    t->sampled_at = now;
    for (const item *i = t->items; i; i = i->next)
        sample(t, i);
}

static uint64_t next_timeout(void *user) {
    (void)user;
    return XL_NEVER;
}

/* Payload, as the kernel counts it. */
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
    if (setsockopt(t->listener, IPPROTO_TCP, TCP_CONGESTION, t->cc, (socklen_t)strlen(t->cc)) != 0) {
        snprintf(error, RELAY_ERROR_BYTES, "The kernel does not offer the congestion controller %s.", t->cc);
        return false;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &t->listener};
    if (bind(t->listener, (struct sockaddr *)&sa, len) != 0 || listen(t->listener, BACKLOG) != 0 ||
        getsockname(t->listener, (struct sockaddr *)&sa, &len) != 0 ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->listener, &event) != 0) {
        snprintf(error, RELAY_ERROR_BYTES, "Cannot listen there: %s.", strerror(errno));
        return false;
    }
    return net_from_sockaddr((struct sockaddr *)&sa, &t->options.listen);
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
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll < 0) {
        snprintf(error, RELAY_ERROR_BYTES, "Cannot wait for events: %s.", strerror(errno));
        return false;
    }
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
        fprintf(stderr, PROGRAM ": %s\n", error);
    relay_free(t.relay);
    while (t.items)
        item_free(&t, t.items);
    if (t.listener >= 0)
        close(t.listener);
    if (t.epoll >= 0)
        close(t.epoll);
    return status;
}
