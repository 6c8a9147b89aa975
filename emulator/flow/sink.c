#include "base/clock.h"
#include "base/wait.h"
#include "emulator/flow/flow.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH        64u
#define BUFFER_BYTES 65536u

typedef struct {
    uint64_t number;
    uint64_t sent_ns;     /* CLOCK_MONOTONIC */
    uint64_t received_ns; /* CLOCK_REALTIME, by the kernel */
} sink_record;

typedef struct {
    int fd;
    FILE *out;
    uint64_t datagrams;
    uint64_t bytes;
    uint32_t overflowed; /* datagrams for which the socket buffer had no room */
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    char control[BATCH][128];
} sink;

static int prepare(sink *s, const fl_options *options) {
    int one = 1;
    uint8_t *buffers = malloc((size_t)BATCH * BUFFER_BYTES);
    struct timeval patience = {.tv_sec = 0, .tv_usec = 100000};
    if (!buffers || setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) != 0 ||
        setsockopt(s->fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof one) != 0 ||
        setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        free(buffers);
        return fl_fail("cannot prepare the socket");
    }
    if (options->segment)
        setsockopt(s->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
    for (uint32_t i = 0; i < BATCH; i++)
        s->vectors[i] = (struct iovec){buffers + (size_t)i * BUFFER_BYTES, BUFFER_BYTES};
    return 0;
}

/* Reads the kernel's control messages: receive time, size of a segment, overflows. */
static void read_control(sink *s, struct msghdr *message, uint64_t *time_ns, uint32_t *segment) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            *time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            memcpy(&s->overflowed, CMSG_DATA(c), sizeof s->overflowed);
        } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            *segment = size > 0 ? (uint32_t)size : *segment;
        }
    }
}

static void take(sink *s, struct mmsghdr *message) {
    sink_record record = {0, 0, 0};
    const uint8_t *data = message->msg_hdr.msg_iov->iov_base;
    uint32_t segment = message->msg_len;
    read_control(s, &message->msg_hdr, &record.received_ns, &segment);
    for (uint32_t at = 0; at + 16 <= message->msg_len; at += segment) {
        memcpy(&record, data + at, 16);
        s->datagrams++;
        if (s->out)
            fwrite(&record, sizeof record, 1, s->out);
    }
    s->bytes += message->msg_len;
}

static void receive(sink *s) {
    for (uint32_t i = 0; i < BATCH; i++) {
        s->messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &s->vectors[i],
            .msg_iovlen = 1,
            .msg_control = s->control[i],
            .msg_controllen = sizeof s->control[i],
        };
    }
    int n = recvmmsg(s->fd, s->messages, BATCH, MSG_WAITFORONE, NULL);
    for (int i = 0; i < n; i++)
        take(s, &s->messages[i]);
}

/* Returns the difference of the two clocks, in ns, by the tightest of several readings. */
static int64_t realtime_minus_monotonic(void) {
    uint64_t best = UINT64_MAX;
    int64_t offset = 0;
    for (int i = 0; i < 50; i++) {
        uint64_t before = clock_ns(CLOCK_MONOTONIC);
        uint64_t real = clock_ns(CLOCK_REALTIME);
        uint64_t after = clock_ns(CLOCK_MONOTONIC);
        if (after - before < best) {
            best = after - before;
            offset = (int64_t)(real - before - (after - before) / 2);
        }
    }
    return offset;
}

/* Receives until SIGTERM or --duration. */
int fl_sink(const fl_options *options) {
    static sink s;
    s.fd = fl_socket(options);
    if (s.fd < 0 || prepare(&s, options) != 0)
        return 2;
    s.out = options->out ? fopen(options->out, "wb") : NULL;
    if (options->out && !s.out) {
        fl_fail(options->out);
        return 2;
    }
    wait_catch_end(NULL);
    fl_announce(s.fd);
    int64_t offset = realtime_minus_monotonic();
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + options->duration_us * 1000u;
    while (!wait_is_ended && clock_ns(CLOCK_MONOTONIC) < end)
        receive(&s);
    int bad = s.out && fclose(s.out) != 0;
    printf("{\"datagrams\":%llu,\"bytes\":%llu,\"overflowed\":%u,\"realtime_minus_monotonic_ns\":%lld,"
           "\"drift_ns\":%lld,\"cpu_s\":%.4f}\n",
           (unsigned long long)s.datagrams, (unsigned long long)s.bytes, s.overflowed, (long long)offset,
           (long long)(realtime_minus_monotonic() - offset), fl_cpu_s());
    return bad ? 1 : 0;
}
