#include "base/clock.h"
#include "emulator/flow/flow.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH         40u /* datagrams per call; with UDP_SEGMENT they must fit into 65507 bytes */
#define SPIN_NS       60000u
#define MAX_PAYLOAD   1472u
#define LINK_OVERHEAD 4u

typedef struct {
    int fd;
    uint32_t payload;
    uint64_t number;
    uint64_t errors;
    bool segment;
    uint8_t data[BATCH * MAX_PAYLOAD];
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
} sender;

static void stamp(sender *s, uint32_t count) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t head[2] = {s->number + i, now};
        memcpy(s->data + (size_t)i * s->payload, head, sizeof head);
    }
}

static void send_batch(sender *s, uint32_t count) {
    stamp(s, count);
    int sent;
    if (s->segment) {
        ssize_t n = send(s->fd, s->data, (size_t)count * s->payload, 0);
        sent = n < 0 ? -1 : (int)count;
    } else {
        sent = sendmmsg(s->fd, s->messages, count, 0);
    }
    if (sent < 0)
        s->errors += count;
    else
        s->errors += count - (uint32_t)sent;
    s->number += count;
}

static void wait_until(uint64_t when_ns) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (when_ns > now + SPIN_NS) {
        uint64_t wake = when_ns - SPIN_NS;
        struct timespec t = {.tv_sec = (time_t)(wake / 1000000000u), .tv_nsec = (long)(wake % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    while (clock_ns(CLOCK_MONOTONIC) < when_ns) {
    }
}

static void prepare(sender *s, const fl_options *options) {
    s->payload = options->ip_bytes - fl_header_bytes(options);
    for (uint32_t i = 0; i < BATCH; i++) {
        s->vectors[i] = (struct iovec){s->data + (size_t)i * s->payload, s->payload};
        s->messages[i].msg_hdr = (struct msghdr){.msg_iov = &s->vectors[i], .msg_iovlen = 1};
    }
    int size = (int)s->payload;
    s->segment = options->segment && setsockopt(s->fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0;
}

/* Datagram n is due at start + n * gap; all due ones are sent together. */
int fl_send(const fl_options *options) {
    static sender s;
    s.fd = fl_socket(options);
    if (s.fd < 0)
        return 2;
    prepare(&s, options);
    double gap_ns = (options->ip_bytes + LINK_OVERHEAD) * 8e9 / options->rate_bps;
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    uint64_t end = start + options->duration_us * 1000u;
    for (uint64_t now = start; now < end; now = clock_ns(CLOCK_MONOTONIC)) {
        uint64_t due = (uint64_t)((double)(now - start) / gap_ns) + 1;
        if (due <= s.number) {
            wait_until(start + (uint64_t)((double)s.number * gap_ns));
            continue;
        }
        send_batch(&s, due - s.number < BATCH ? (uint32_t)(due - s.number) : BATCH);
    }
    printf("{\"sent\":%llu,\"errors\":%llu,\"start_monotonic_ns\":%llu,\"cpu_s\":%.4f}\n", (unsigned long long)s.number,
           (unsigned long long)s.errors, (unsigned long long)start, fl_cpu_s());
    close(s.fd);
    return 0;
}
