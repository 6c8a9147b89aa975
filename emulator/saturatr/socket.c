#include "emulator/saturatr/socket.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH        64u
#define BATCHES      8
#define CONTROL_ROOM 256u
#define BELIEVABLE_S 10 /* an older timestamp is from before a step of the clock */

size_t sat_header_bytes(const xl_addr *address) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* IPv4 at an IPv6 socket */
    const bool v6 = address->family == 6 && memcmp(address->ip, mapped, sizeof mapped) != 0;
    return SAT_UDP_BYTES + (v6 ? SAT_IPV6_BYTES : SAT_IPV4_BYTES);
}

static void set(int fd, int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value); /* all options are optional */
}

static void configure(sat_socket *s, const char *device) {
    set(s->fd, SOL_SOCKET, SO_RCVBUF, SAT_SOCKET_BUFFERS);
    set(s->fd, SOL_SOCKET, SO_SNDBUF, SAT_SOCKET_BUFFERS);
    set(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, SAT_SOCKET_BUFFERS);
    set(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, SAT_SOCKET_BUFFERS);
    set(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    set(s->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    if (s->v6) {
        set(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        set(s->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        set(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    }
    set(s->fd, IPPROTO_IP, IP_PKTINFO, 1);
    set(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE); /* never fragments; ignores ICMP */
    if (device)
        setsockopt(s->fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device));
}

bool sat_socket_open(sat_socket *s, xl_addr *local, const char *device, char *error) {
    char text[SAT_ADDRESS_TEXT];
    struct sockaddr_storage at;
    socklen_t length = net_to_sockaddr(local, &at);
    *s = (sat_socket){.v6 = local->family == 6,
                      .fd = socket(at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (s->fd >= 0)
        configure(s, device);
    if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&at, length) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&at, &length) != 0) {
        snprintf(error, SAT_ERROR_SIZE, "cannot use UDP on %s: %s", xl_addr_format(local, text, sizeof text),
                 strerror(errno));
        sat_socket_close(s);
        return false;
    }
    net_from_sockaddr((const struct sockaddr *)&at, local);
    return true;
}

void sat_socket_close(sat_socket *s) {
    descriptor_close(&s->fd);
}

/* Reads control messages. real_ahead_us: real-time clock, which timestamps use, minus monotonic clock. */
static void read_control(sat_socket *s, struct msghdr *message, uint64_t real_ahead_us, sat_datagram *datagram) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            uint64_t at = (uint64_t)stamp.tv_sec * 1000000u + (uint64_t)stamp.tv_nsec / 1000u - real_ahead_us;
            if (at <= datagram->received_us && datagram->received_us - at < BELIEVABLE_S * 1000000u)
                datagram->received_us = at;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            memcpy(&s->dropped, CMSG_DATA(c), sizeof s->dropped);
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && !s->v6) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            datagram->to = (xl_addr){.family = 4};
            memcpy(datagram->to.ip, &info.ipi_addr, sizeof info.ipi_addr);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            datagram->to = (xl_addr){.family = 6};
            memcpy(datagram->to.ip, &info.ipi6_addr, sizeof info.ipi6_addr);
        }
    }
}

static int receive_batch(sat_socket *s, void (*on_datagram)(void *, const sat_datagram *), void *user) {
    static struct {
        struct mmsghdr messages[BATCH];
        struct iovec vectors[BATCH];
        struct sockaddr_storage from[BATCH];
        uint8_t data[BATCH][SAT_DATAGRAM_SEEN];
        _Alignas(struct cmsghdr) uint8_t control[BATCH][CONTROL_ROOM];
    } in;
    for (size_t i = 0; i < BATCH; i++) {
        in.vectors[i] = (struct iovec){.iov_base = in.data[i], .iov_len = SAT_DATAGRAM_SEEN};
        in.messages[i].msg_hdr = (struct msghdr){.msg_name = &in.from[i],
                                                 .msg_namelen = sizeof in.from[i],
                                                 .msg_iov = &in.vectors[i],
                                                 .msg_iovlen = 1,
                                                 .msg_control = in.control[i],
                                                 .msg_controllen = CONTROL_ROOM};
    }
    int n = recvmmsg(s->fd, in.messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
    uint64_t now = clock_us();
    uint64_t real_ahead = clock_ns(CLOCK_REALTIME) / 1000 - now;
    for (int i = 0; i < n; i++) {
        sat_datagram datagram = {.data = in.data[i], .datagram_bytes = in.messages[i].msg_len, .received_us = now};
        net_from_sockaddr((const struct sockaddr *)&in.from[i], &datagram.from);
        datagram.length = datagram.datagram_bytes < SAT_DATAGRAM_SEEN ? datagram.datagram_bytes : SAT_DATAGRAM_SEEN;
        datagram.ip_bytes = (uint32_t)(datagram.datagram_bytes + sat_header_bytes(&datagram.from));
        read_control(s, &in.messages[i].msg_hdr, real_ahead, &datagram);
        on_datagram(user, &datagram);
    }
    return n;
}

void sat_socket_receive(sat_socket *s, void (*on_datagram)(void *, const sat_datagram *), void *user) {
    for (int i = 0; i < BATCHES; i++)
        if (receive_batch(s, on_datagram, user) < (int)BATCH)
            return;
}

static void add_control(struct msghdr *message, uint8_t *room, int level, int type, const void *value, size_t length) {
    struct cmsghdr *c = (struct cmsghdr *)(room + message->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(c), value, length);
    message->msg_control = room;
    message->msg_controllen += CMSG_SPACE(length);
}

static void add_source(struct msghdr *message, uint8_t *room, const xl_addr *local) {
    struct in6_pktinfo v6 = {0};
    struct in_pktinfo v4 = {0};
    if (local->family == 6) {
        memcpy(&v6.ipi6_addr, local->ip, sizeof v6.ipi6_addr);
        add_control(message, room, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof v6);
    } else {
        memcpy(&v4.ipi_spec_dst, local->ip, sizeof v4.ipi_spec_dst);
        add_control(message, room, IPPROTO_IP, IP_PKTINFO, &v4, sizeof v4);
    }
}

static bool send_one_call(const sat_socket *s, const xl_addr *to, const xl_addr *local, const uint8_t *data,
                          size_t segment, size_t count) {
    _Alignas(struct cmsghdr) uint8_t room[CONTROL_ROOM] = {0};
    struct sockaddr_storage name;
    const socklen_t name_length = net_to_sockaddr(to, &name);
    struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = segment * count};
    struct msghdr message = {.msg_name = &name, .msg_namelen = name_length, .msg_iov = &vector, .msg_iovlen = 1};
    if (local && local->family != 0)
        add_source(&message, room, local);
    if (count > 1) {
        uint16_t size = (uint16_t)segment;
        add_control(&message, room, SOL_UDP, UDP_SEGMENT, &size, sizeof size);
    }
    ssize_t n;
    do {
        n = sendmsg(s->fd, &message, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)(segment * count);
}

size_t sat_socket_send(sat_socket *s, const xl_addr *to, const xl_addr *local, const uint8_t *data, size_t segment,
                       size_t count) {
    size_t sent = 0;
    while (sent < count) {
        size_t n = s->no_gso ? 1 : count - sent < SAT_GSO_MOST ? count - sent : SAT_GSO_MOST;
        if (send_one_call(s, to, local, data + sent * segment, segment, n))
            sent += n;
        else if (n > 1 && (errno == EIO || errno == EINVAL || errno == EOPNOTSUPP))
            s->no_gso = true; /* segmentation needs checksum offload */
        else
            break;
    }
    return sent;
}
