#include "driver/udp_internal.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>

#define RECEIVE_ROUNDS 16 /* recvmmsg() calls per socket and xl_udp_receive(), so that timers are not delayed */

/* A message's control data. */
typedef struct {
    size_t segment_bytes; /* 0: one datagram */
    uint8_t ecn;
} receive_info;

static receive_info read_control(struct msghdr *msg, const udp_socket *s, xl_addr *local) {
    receive_info info = {0};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
            int bytes;
            memcpy(&bytes, CMSG_DATA(c), sizeof bytes);
            info.segment_bytes = bytes > 0 ? (size_t)bytes : 0;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            info.ecn = *CMSG_DATA(c) & 3;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int class;
            memcpy(&class, CMSG_DATA(c), sizeof class);
            info.ecn = (uint8_t)(class & 3);
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && s->wildcard) {
            struct in_pktinfo pktinfo;
            memcpy(&pktinfo, CMSG_DATA(c), sizeof pktinfo);
            memcpy(local->ip, &pktinfo.ipi_addr, 4);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO && s->wildcard) {
            struct in6_pktinfo pktinfo;
            memcpy(&pktinfo, CMSG_DATA(c), sizeof pktinfo);
            memcpy(local->ip, &pktinfo.ipi6_addr, 16);
        }
    }
    return info;
}

/* Passes on a message, which may be several datagrams that the kernel coalesced. */
static void deliver(xl_udp *u, const udp_socket *s, struct msghdr *msg, size_t len, xl_udp_taker *take, void *user) {
    xl_datagram d = {.local = s->bound};
    udp_from_sockaddr(msg->msg_name, &d.remote);
    receive_info info = read_control(msg, s, &d.local);
    d.ecn = info.ecn;
    uint8_t *data = msg->msg_iov->iov_base;
    size_t step = info.segment_bytes ? info.segment_bytes : len;
    for (size_t at = 0; at < len; at += step) {
        d.len = len - at < step ? len - at : step;
        u->stats.datagrams_received++;
        take(user, &d, data + at);
    }
}

static void receive_socket(xl_udp *u, const udp_socket *s, xl_udp_taker *take, void *user) {
    struct mmsghdr messages[RECEIVE_BATCH];
    struct iovec iov[RECEIVE_BATCH];
    struct sockaddr_storage names[RECEIVE_BATCH];
    udp_control controls[RECEIVE_BATCH];
    for (int round = 0; round < RECEIVE_ROUNDS; round++) {
        for (size_t i = 0; i < RECEIVE_BATCH; i++) {
            iov[i] =
                (struct iovec){.iov_base = u->receive_buffers + i * MAX_DATAGRAM_BYTES, .iov_len = MAX_DATAGRAM_BYTES};
            messages[i].msg_hdr = (struct msghdr){.msg_name = &names[i],
                                                  .msg_namelen = sizeof names[i],
                                                  .msg_iov = &iov[i],
                                                  .msg_iovlen = 1,
                                                  .msg_control = controls[i].bytes,
                                                  .msg_controllen = sizeof controls[i].bytes};
        }
        u->stats.receive_calls++;
        int n = recvmmsg(s->fd, messages, RECEIVE_BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++)
            if (messages[i].msg_len > 0 && !(messages[i].msg_hdr.msg_flags & MSG_TRUNC))
                deliver(u, s, &messages[i].msg_hdr, messages[i].msg_len, take, user);
        /* An error concerns an earlier datagram that was sent. Received datagrams may follow it. */
        if (n < 0 ? errno == EAGAIN || errno == EWOULDBLOCK : n < RECEIVE_BATCH)
            return;
    }
}

void xl_udp_receive_each(xl_udp *u, xl_udp_taker *take, void *user) {
    struct epoll_event events[XL_UDP_MAX_SOCKETS];
    int n = epoll_wait(u->epoll_fd, events, XL_UDP_MAX_SOCKETS, 0);
    for (int i = 0; i < n; i++) {
        size_t index = (size_t)events[i].data.u64;
        if (events[i].events & EPOLLERR)
            (void)udp_take_errors(u, &u->sockets[index]);
        if (events[i].events & EPOLLOUT)
            udp_send_kept(u, index);
        if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
            receive_socket(u, &u->sockets[index], take, user);
    }
}

typedef struct {
    xl_endpoint *endpoint;
    uint64_t now;
} receiver;

static void pass_on(void *user, const xl_datagram *d, uint8_t *data) {
    const receiver *to = user;
    xl_endpoint_receive(to->endpoint, d, data, to->now);
}

void xl_udp_receive(xl_udp *u, xl_endpoint *endpoint, uint64_t now) {
    receiver to = {endpoint, now};
    xl_udp_receive_each(u, pass_on, &to);
}
