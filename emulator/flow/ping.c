#include "base/clock.h"
#include "base/wait.h"
#include "emulator/flow/flow.h"

#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 2

static void limit_waiting(int fd) {
    struct timeval patience = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* Measures one round trip, in ns; 0 if no answer came. */
static uint64_t round_trip(int fd, uint64_t number, uint64_t *sent_ns) {
    uint64_t message[2] = {number, clock_ns(CLOCK_MONOTONIC)};
    uint64_t answer[2];
    *sent_ns = message[1];
    if (send(fd, message, sizeof message, 0) != (ssize_t)sizeof message)
        return 0;
    while (recv(fd, answer, sizeof answer, 0) == (ssize_t)sizeof answer)
        if (answer[0] == number)
            return clock_ns(CLOCK_MONOTONIC) - message[1];
    return 0;
}

/* Prints a line per answered ping: sent_monotonic_ns rtt_ns. The pause between pings varies, so that they cover all
 * phases of a millisecond. */
int fl_ping(const fl_options *options) {
    int fd = fl_socket(options);
    if (fd < 0)
        return 2;
    limit_waiting(fd);
    for (uint32_t i = 0; i < options->count; i++) {
        uint64_t pause_ns = options->interval_us * 1000u + (uint64_t)i * 377777u % 1000000u;
        struct timespec pause = {.tv_sec = (time_t)(pause_ns / 1000000000u), .tv_nsec = (long)(pause_ns % 1000000000u)};
        nanosleep(&pause, NULL);
        uint64_t sent;
        uint64_t rtt = round_trip(fd, i + 1, &sent);
        if (rtt > 0)
            printf("%llu %llu\n", (unsigned long long)sent, (unsigned long long)rtt);
    }
    close(fd);
    return 0;
}

int fl_echo(const fl_options *options) {
    int fd = fl_socket(options);
    if (fd < 0)
        return 2;
    wait_catch_end(NULL);
    limit_waiting(fd);
    fl_announce(fd);
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + options->duration_us * 1000u;
    while (!wait_is_ended && clock_ns(CLOCK_MONOTONIC) < end) {
        uint8_t data[2048];
        struct sockaddr_storage from;
        socklen_t from_size = sizeof from;
        ssize_t n = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &from_size);
        if (n >= 0)
            sendto(fd, data, (size_t)n, 0, (const struct sockaddr *)&from, from_size);
    }
    close(fd);
    return 0;
}
