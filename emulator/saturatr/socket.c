#include "emulator/saturatr/socket.h"
#include "base/clock.h"
#include "base/descriptors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH        64u
#define BATCHES      8
#define CONTROL_ROOM 256u
#define BELIEVABLE_S 10 /* an older timestamp is from before a step of the clock */

bool sat_address_parse(const char *text, bool with_port, sat_address *out) {
    char host[SAT_ADDRESS_TEXT];
    const char *port = "0";
    size_t length = strlen(text);
    const char *colon = with_port ? strrchr(text, ':') : NULL;
    if (length >= sizeof host || (with_port && !colon))
        return false;
    if (colon) {
        length = (size_t)(colon - text);
        port = colon + 1;
    }
    bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    if (with_port && !bracketed && memchr(text, ':', length))
        return false; /* an IPv6 address with a port needs brackets */
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? length - 2 : length), text + (bracketed ? 1 : 0));
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found;
    if (host[0] == '\0' || port[0] == '\0' || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
        strtoul(port, NULL, 10) > UINT16_MAX || getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    memset(out, 0, sizeof *out);
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

const char *sat_address_text(const sat_address *address, char out[SAT_ADDRESS_TEXT]) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->at.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&address->at)->sin6_addr, host, sizeof host);
        snprintf(out, SAT_ADDRESS_TEXT, "[%s]:%u", host, sat_address_port(address));
    } else {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&address->at)->sin_addr, host, sizeof host);
        snprintf(out, SAT_ADDRESS_TEXT, "%s:%u", host, sat_address_port(address));
    }
    return out;
}

/* sin_port and sin6_port have the same offset. */
void sat_address_set_port(sat_address *address, uint16_t port) {
    ((struct sockaddr_in *)&address->at)->sin_port = htons(port);
}

uint16_t sat_address_port(const sat_address *address) {
    return ntohs(((const struct sockaddr_in *)&address->at)->sin_port);
}

bool sat_address_same_host(const sat_address *a, const sat_address *b) {
    if (a->at.ss_family != b->at.ss_family)
        return false;
    if (a->at.ss_family == AF_INET6) {
        return memcmp(&((const struct sockaddr_in6 *)&a->at)->sin6_addr,
                      &((const struct sockaddr_in6 *)&b->at)->sin6_addr, sizeof(struct in6_addr)) == 0;
    }
    return ((const struct sockaddr_in *)&a->at)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&b->at)->sin_addr.s_addr;
}

size_t sat_address_overhead(const sat_address *address) {
    bool v6 = address->at.ss_family == AF_INET6 &&
              !IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)&address->at)->sin6_addr);
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

bool sat_socket_open(sat_socket *s, const sat_address *local, const char *device, char *error) {
    memset(s, 0, sizeof *s);
    char text[SAT_ADDRESS_TEXT];
    s->v6 = local->at.ss_family == AF_INET6;
    s->fd = socket(local->at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd >= 0)
        configure(s, device);
    if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&local->at, local->length) != 0) {
        snprintf(error, SAT_ERROR_SIZE, "cannot use UDP on %s: %s", sat_address_text(local, text), strerror(errno));
        sat_socket_close(s);
        return false;
    }
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
            struct sockaddr_in *to = (struct sockaddr_in *)&datagram->to.at;
            to->sin_family = AF_INET;
            to->sin_addr = info.ipi_addr;
            datagram->to.length = sizeof *to;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            struct sockaddr_in6 *to = (struct sockaddr_in6 *)&datagram->to.at;
            to->sin6_family = AF_INET6;
            to->sin6_addr = info.ipi6_addr;
            datagram->to.length = sizeof *to;
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
        sat_datagram datagram = {.data = in.data[i],
                                 .datagram_bytes = in.messages[i].msg_len,
                                 .received_us = now,
                                 .from.length = in.messages[i].msg_hdr.msg_namelen};
        memcpy(&datagram.from.at, &in.from[i], sizeof in.from[i]);
        datagram.length = datagram.datagram_bytes < SAT_DATAGRAM_SEEN ? datagram.datagram_bytes : SAT_DATAGRAM_SEEN;
        datagram.ip_bytes = (uint32_t)(datagram.datagram_bytes + sat_address_overhead(&datagram.from));
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

static void add_source(struct msghdr *message, uint8_t *room, const sat_address *local) {
    if (local->at.ss_family == AF_INET6) {
        struct in6_pktinfo info = {.ipi6_addr = ((const struct sockaddr_in6 *)&local->at)->sin6_addr};
        add_control(message, room, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    } else {
        struct in_pktinfo info = {.ipi_spec_dst = ((const struct sockaddr_in *)&local->at)->sin_addr};
        add_control(message, room, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    }
}

static bool send_one_call(const sat_socket *s, const sat_address *to, const sat_address *local, const uint8_t *data,
                          size_t segment, size_t count) {
    _Alignas(struct cmsghdr) uint8_t room[CONTROL_ROOM] = {0};
    struct sockaddr_storage name = to->at;
    struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = segment * count};
    struct msghdr message = {.msg_name = &name, .msg_namelen = to->length, .msg_iov = &vector, .msg_iovlen = 1};
    if (local && local->length > 0)
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

size_t sat_socket_send(sat_socket *s, const sat_address *to, const sat_address *local, const uint8_t *data,
                       size_t segment, size_t count) {
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
