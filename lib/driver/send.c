#include "driver/udp_internal.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define MAX_SEGMENTS   64                    /* datagrams per segmented send: the limit of older kernels */
#define MAX_RUN_BYTES  65507                 /* largest UDP payload of IPv4, which is below IPv6's */
#define MAX_KEPT_BYTES ((size_t)1024 * 1024) /* per socket: above, no datagram is taken from the endpoint */

static void watch_room(xl_udp *u, size_t index, bool wanted) {
    struct epoll_event event = {.events = EPOLLIN | (wanted ? (uint32_t)EPOLLOUT : 0u), .data.u64 = index};
    (void)epoll_ctl(u->epoll_fd, EPOLL_CTL_MOD, u->sockets[index].fd, &event);
}

static void add_control(struct msghdr *msg, int level, int type, const void *data, size_t len) {
    struct cmsghdr *c = (struct cmsghdr *)((char *)msg->msg_control + msg->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), data, len);
    msg->msg_controllen += CMSG_SPACE(len);
}

/* Fills in one message for a run. Everything that it points to must live as long as msg. */
static void build_message(const udp_socket *s, const udp_run *run, const uint8_t *data, struct msghdr *msg,
                          struct iovec *iov, struct sockaddr_storage *name, udp_control *control) {
    memset(control, 0, sizeof *control);
    *iov = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = run->len};
    *msg = (struct msghdr){.msg_name = name, .msg_iov = iov, .msg_iovlen = 1, .msg_control = control->bytes};
    msg->msg_namelen = udp_to_sockaddr(&run->remote, name);
    bool v4 = run->remote.family == 4;
    if (s->wildcard && v4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, run->local.ip, 4);
        add_control(msg, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    } else if (s->wildcard) {
        struct in6_pktinfo info = {0};
        memcpy(&info.ipi6_addr, run->local.ip, 16);
        add_control(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    }
    if (run->ecn) {
        int tos = run->ecn & 3;
        add_control(msg, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &tos, sizeof tos);
    }
    if (run->segments > 1) {
        uint16_t bytes = (uint16_t)run->segment_bytes;
        add_control(msg, SOL_UDP, UDP_SEGMENT, &bytes, sizeof bytes);
    }
    if (msg->msg_controllen == 0)
        msg->msg_control = NULL;
}

static void keep(xl_udp *u, const udp_run *run, const uint8_t *data) {
    udp_socket *s = &u->sockets[run->socket];
    udp_kept *k = malloc(sizeof *k + run->len);
    if (!k) {
        u->stats.dark += run->segments;
        return;
    }
    k->next = NULL;
    k->run = *run;
    memcpy(k->data, data, run->len);
    if (s->kept_last)
        s->kept_last->next = k;
    else
        s->kept_first = k;
    s->kept_last = k;
    if (s->kept_bytes == 0)
        watch_room(u, run->socket, true);
    s->kept_bytes += run->len;
    u->stats.kept += run->segments;
}

/* Records that a datagram could not be sent, with the reason in errno. */
static void note_failure(xl_udp *u, const udp_run *run) {
    u->stats.last_dark_errno = (uint64_t)errno;
    udp_note_refusal(&u->sockets[run->socket]);
    if (errno == EMSGSIZE && u->too_large_count < TOO_LARGE_KEPT)
        u->too_large[u->too_large_count++] =
            (xl_datagram){.local = run->local, .remote = run->remote, .len = run->segment_bytes};
}

static void report_too_large(xl_udp *u, xl_endpoint *endpoint, uint64_t now) {
    for (size_t i = 0; i < u->too_large_count; i++)
        xl_endpoint_too_large(endpoint, &u->too_large[i], now);
    u->too_large_count = 0;
}

typedef enum { SENT, NO_ROOM, DARK } send_result;

/* Sends one run, without sendmmsg(). */
static send_result send_single(xl_udp *u, const udp_run *run, const uint8_t *data) {
    struct msghdr msg;
    struct iovec iov;
    struct sockaddr_storage name;
    udp_control control;
    udp_socket *s = &u->sockets[run->socket];
    build_message(s, run, data, &msg, &iov, &name, &control);
    ssize_t n = -1;
    /* An ICMP error of an earlier datagram makes one send fail, so it is repeated. */
    for (int tries = 0; tries < 3; tries++) {
        u->stats.send_calls++;
        n = sendmsg(s->fd, &msg, 0);
        if (n >= 0 || (errno != EINTR && !udp_take_errors(u, s)))
            break;
    }
    if (n >= 0) {
        u->stats.datagrams_sent += run->segments;
        u->stats.segmented_sends += run->segments > 1;
        return SENT;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        return NO_ROOM;
    note_failure(u, run);
    return DARK;
}

/* Sends the datagrams of a run one by one, and keeps those without room. Returns whether one was sent. */
static bool send_segments(xl_udp *u, const udp_run *run, const uint8_t *data) {
    size_t at = 0;
    bool any = false;
    while (at < run->len) {
        udp_run one = *run;
        one.len = run->len - at < run->segment_bytes ? run->len - at : run->segment_bytes;
        one.segments = 1;
        send_result result = u->sockets[run->socket].kept_bytes > 0 ? NO_ROOM : send_single(u, &one, data + at);
        if (result == NO_ROOM)
            keep(u, &one, data + at);
        else if (result == DARK)
            u->stats.dark++;
        any |= result == SENT;
        at += one.len;
    }
    return any;
}

/* Handles a run that could not be sent, with the reason in errno. */
static void run_failed(xl_udp *u, const udp_run *run, const uint8_t *data) {
    udp_socket *s = &u->sockets[run->socket];
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
        keep(u, run, data);
    } else if (run->segments > 1 && (errno == EIO || errno == EINVAL || errno == EMSGSIZE || errno == EOPNOTSUPP)) {
        /* If single datagrams can be sent, the kernel or device cannot segment. Else it may be the address: port 0 is
         * EINVAL too. */
        bool is_unable = errno != EMSGSIZE;
        s->no_segmentation |= send_segments(u, run, data) && is_unable;
    } else {
        u->stats.dark += run->segments;
        note_failure(u, run);
    }
}

/* Sends runs [from, to), which share a socket, in as few system calls as the kernel allows. */
static void send_runs(xl_udp *u, size_t from, size_t to) {
    struct mmsghdr messages[SEND_RUNS];
    struct iovec iov[SEND_RUNS];
    struct sockaddr_storage names[SEND_RUNS];
    udp_control controls[SEND_RUNS];
    udp_socket *s = &u->sockets[u->runs[from].socket];
    for (size_t i = from; i < to; i++)
        build_message(s, &u->runs[i], u->arena + u->runs[i].offset, &messages[i].msg_hdr, &iov[i], &names[i],
                      &controls[i]);
    bool retried = false;
    while (from < to) {
        const udp_run *run = &u->runs[from];
        const uint8_t *data = u->arena + run->offset;
        if (s->kept_bytes > 0) { /* to preserve the order */
            keep(u, run, data);
            from++;
            continue;
        }
        u->stats.send_calls++;
        int n = sendmmsg(s->fd, &messages[from], (unsigned)(to - from), 0);
        for (int i = 0; i < n; i++, from++) {
            u->stats.datagrams_sent += u->runs[from].segments;
            u->stats.segmented_sends += u->runs[from].segments > 1;
        }
        if (n >= 0) {
            retried = false;
        } else if (errno != EINTR) {
            if (udp_take_errors(u, s) && !retried) {
                retried = true;
                continue;
            }
            run_failed(u, run, data);
            from++;
        }
    }
}

static void send_batch(xl_udp *u) {
    size_t from = 0;
    for (size_t i = 1; i <= u->run_count; i++) {
        if (i == u->run_count || u->runs[i].socket != u->runs[from].socket) {
            send_runs(u, from, i);
            from = i;
        }
    }
    u->run_count = 0;
    u->arena_used = 0;
}

/* Returns the socket for datagrams from `local`; -1: none. */
static int socket_for(const xl_udp *u, const xl_addr *local) {
    int wildcard = -1;
    for (size_t i = 0; i < u->count; i++) {
        const xl_addr *bound = &u->sockets[i].bound;
        if (xl_addr_equal(bound, local))
            return (int)i;
        if (u->sockets[i].wildcard && bound->family == local->family && bound->port == local->port)
            wildcard = (int)i;
    }
    return wildcard;
}

/* Whether two datagrams have the same destination CID. A receiving kernel may look only at the first segment of a
 * segmented send, and select a worker for all of it by that CID. */
static bool same_destination_cid(const uint8_t *a, const uint8_t *b, size_t len) {
    size_t at = a[0] & 0x80 ? 6 : 1, most = at + 8; /* RFC 8999 */
    if ((a[0] ^ b[0]) & 0x80)
        return false;
    return len >= most && memcmp(a + at, b + at, 8) == 0;
}

/* Adds the datagram at the end of the arena to the last run, or begins a new one. */
static void add_datagram(xl_udp *u, size_t socket, const xl_datagram *d, size_t len) {
    udp_run *last = u->run_count ? &u->runs[u->run_count - 1] : NULL;
    bool joins = last && last->socket == socket && !u->sockets[socket].no_segmentation && last->ecn == d->ecn &&
                 !last->is_alone && !d->is_mtu_probe && len <= last->segment_bytes &&
                 last->len == last->segments * last->segment_bytes && last->segments < MAX_SEGMENTS &&
                 last->len + len <= MAX_RUN_BYTES && xl_addr_equal(&last->remote, &d->remote) &&
                 xl_addr_equal(&last->local, &d->local) &&
                 same_destination_cid(u->arena + last->offset, u->arena + u->arena_used, len);
    if (joins) {
        last->len += len;
        last->segments++;
    } else {
        u->runs[u->run_count++] = (udp_run){.socket = socket,
                                            .local = d->local,
                                            .remote = d->remote,
                                            .ecn = d->ecn,
                                            .offset = u->arena_used,
                                            .len = len,
                                            .segment_bytes = len,
                                            .segments = 1,
                                            .is_alone = d->is_mtu_probe};
    }
    u->arena_used += len;
}

bool xl_udp_has_room(const xl_udp *u) {
    for (size_t i = 0; i < u->count; i++)
        if (u->sockets[i].kept_bytes > MAX_KEPT_BYTES)
            return false;
    return true;
}

/* Sends the batch if the arena has no room for one more datagram. */
static void make_room(xl_udp *u) {
    if (u->run_count == SEND_RUNS || ARENA_BYTES - u->arena_used < MAX_DATAGRAM_BYTES)
        send_batch(u);
}

/* Takes the datagram at the end of the arena. */
static void take_datagram(xl_udp *u, const xl_datagram *d, size_t len) {
    int socket = socket_for(u, &d->local);
    if (socket >= 0)
        add_datagram(u, (size_t)socket, d, len);
    else
        u->stats.dark++;
}

void xl_udp_queue(xl_udp *u, const xl_datagram *d, const uint8_t *data) {
    make_room(u);
    memcpy(u->arena + u->arena_used, data, d->len);
    take_datagram(u, d, d->len);
}

void xl_udp_send(xl_udp *u) {
    send_batch(u);
    u->too_large_count = 0; /* there is no endpoint to report to */
}

void xl_udp_flush(xl_udp *u, xl_endpoint *endpoint, uint64_t now) {
    while (xl_udp_has_room(u)) {
        make_room(u);
        xl_datagram d;
        size_t len = xl_endpoint_transmit(endpoint, u->arena + u->arena_used, ARENA_BYTES - u->arena_used, &d, now);
        if (len == 0)
            break;
        take_datagram(u, &d, len);
    }
    send_batch(u);
    report_too_large(u, endpoint, now);
}

void udp_send_kept(xl_udp *u, size_t index) {
    udp_socket *s = &u->sockets[index];
    while (s->kept_first) {
        udp_kept *k = s->kept_first;
        send_result result = send_single(u, &k->run, k->data);
        if (result == NO_ROOM)
            return;
        if (result == DARK)
            u->stats.dark += k->run.segments;
        s->kept_first = k->next;
        s->kept_bytes -= k->run.len;
        free(k);
    }
    s->kept_last = NULL;
    watch_room(u, index, false);
}
