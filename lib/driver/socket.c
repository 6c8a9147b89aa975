#include "driver/udp_internal.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BUFFER_BYTES (4 * 1024 * 1024)

uint64_t xl_udp_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t xl_udp_time_of_day_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* ---- addresses ---- */

socklen_t udp_to_sockaddr(const xl_addr *addr, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (addr->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(addr->port);
        memcpy(&in->sin_addr, addr->ip, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(addr->port);
    memcpy(&in6->sin6_addr, addr->ip, 16);
    return sizeof *in6;
}

void udp_from_sockaddr(const struct sockaddr_storage *in, xl_addr *out) {
    memset(out, 0, sizeof *out);
    if (in->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)in;
        out->family = 4;
        out->port = ntohs(v4->sin_port);
        memcpy(out->ip, &v4->sin_addr, 4);
    } else if (in->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)in;
        out->family = 6;
        out->port = ntohs(v6->sin6_port);
        memcpy(out->ip, &v6->sin6_addr, 16);
    }
}

static bool is_wildcard(const xl_addr *addr) {
    for (size_t i = 0; i < (addr->family == 4 ? 4u : 16u); i++)
        if (addr->ip[i])
            return false;
    return true;
}

/* ---- life ---- */

xl_udp *xl_udp_new(void) {
    xl_udp *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    u->receive_buffers = malloc((size_t)RECEIVE_BATCH * MAX_DATAGRAM_BYTES);
    u->arena = malloc(ARENA_BYTES);
    if (u->epoll_fd < 0 || !u->receive_buffers || !u->arena) {
        xl_udp_free(u);
        return NULL;
    }
    return u;
}

void xl_udp_free(xl_udp *u) {
    if (!u)
        return;
    for (size_t i = 0; i < u->count; i++) {
        udp_socket *s = &u->sockets[i];
        while (s->kept_first) {
            udp_kept *next = s->kept_first->next;
            free(s->kept_first);
            s->kept_first = next;
        }
        close(s->fd);
    }
    if (u->epoll_fd >= 0)
        close(u->epoll_fd);
    free(u->receive_buffers);
    free(u->arena);
    free(u);
}

/* Queues ICMP errors, so that a client sees if nobody listens on the server's port. Not for a server's wildcard socket:
 * an error of one client would make sends to others fail. */
static void watch_errors(int fd, uint8_t family) {
    int on = 1;
    if (family == 4)
        (void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    else
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
}

/* All options are optional. SO_*BUFFORCE needs CAP_NET_ADMIN; otherwise the kernel limits the buffers. */
static void tune(int fd, uint8_t family) {
    int on = 1, size = SOCKET_BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    (void)setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
    if (family == 4) { /* never fragment (RFC 9000 section 14), and ignore the kernel's path MTU */
        int probe = IP_PMTUDISC_PROBE;
        (void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
        (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    } else {
        int probe = IPV6_PMTUDISC_PROBE;
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    }
}

int udp_open_socket(const xl_addr *local, bool shared, xl_addr *bound) {
    int fd = socket(local->family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    tune(fd, local->family);
    struct sockaddr_storage sa;
    socklen_t len = udp_to_sockaddr(local, &sa);
    int on = 1;
    if (shared)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    int error = bind(fd, (struct sockaddr *)&sa, len) != 0 ? errno : 0;
    len = sizeof sa;
    if (!error && getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        error = errno;
    if (error) {
        close(fd);
        return -error;
    }
    udp_from_sockaddr(&sa, bound);
    if (!is_wildcard(bound))
        watch_errors(fd, bound->family);
    return fd;
}

int xl_udp_add_socket(xl_udp *u, const xl_addr *local, xl_addr *bound) {
    if (u->count == XL_UDP_MAX_SOCKETS)
        return -EMFILE;
    if (local->family != 4 && local->family != 6)
        return -EAFNOSUPPORT;
    xl_addr own;
    int fd = udp_open_socket(local, false, &own);
    if (fd < 0)
        return fd;
    if (bound)
        *bound = own;
    return xl_udp_adopt_socket(u, fd, &own);
}

int xl_udp_adopt_socket(xl_udp *u, int fd, const xl_addr *bound) {
    if (u->count == XL_UDP_MAX_SOCKETS) {
        close(fd);
        return -EMFILE;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = u->count};
    if (epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    u->sockets[u->count] = (udp_socket){.fd = fd, .bound = *bound, .wildcard = is_wildcard(bound)};
    return (int)u->count++;
}

void udp_note_refusal(udp_socket *s) {
    /* Linux returns EINVAL if it no longer has the source address. */
    static const int speaking[] = {ENETDOWN, EADDRNOTAVAIL, ENETUNREACH, ENODEV, ENXIO, EINVAL};
    for (size_t i = 0; i < sizeof speaking / sizeof speaking[0]; i++)
        s->refused |= errno == speaking[i] && !s->wildcard;
}

bool xl_udp_is_refused(const xl_udp *u, int socket) {
    return socket >= 0 && (size_t)socket < u->count && u->sockets[socket].refused;
}

bool xl_udp_try_socket(xl_udp *u, int index, const xl_addr *remote) {
    if (index < 0 || (size_t)index >= u->count)
        return false;
    udp_socket *s = &u->sockets[index];
    struct sockaddr_storage sa;
    xl_addr local = s->bound;
    local.port = 0;
    int fd = socket(local.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    socklen_t len = udp_to_sockaddr(&local, &sa);
    bool ok = bind(fd, (struct sockaddr *)&sa, len) == 0;
    len = udp_to_sockaddr(remote, &sa);
    ok = ok && connect(fd, (struct sockaddr *)&sa, len) == 0;
    close(fd);
    if (ok)
        s->refused = s->no_segmentation = false;
    return ok;
}

int xl_udp_fd(const xl_udp *u) {
    return u->epoll_fd;
}

void xl_udp_get_stats(const xl_udp *u, xl_udp_stats *out) {
    *out = u->stats;
}

bool udp_take_errors(xl_udp *u, const udp_socket *s) {
    int saved = errno;
    bool any = false;
    for (;;) {
        udp_control control;
        struct msghdr msg = {.msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        if (recvmsg(s->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            break;
        any = true;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
            bool error = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                         (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
            struct sock_extended_err e;
            if (error && c->cmsg_len >= CMSG_LEN(sizeof e)) {
                memcpy(&e, CMSG_DATA(c), sizeof e);
                u->stats.refused += e.ee_errno == ECONNREFUSED;
            }
        }
    }
    errno = saved;
    return any;
}
