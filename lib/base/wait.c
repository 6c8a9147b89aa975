#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

void wait_handle_signals(const sigset_t *unblocked) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, unblocked, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int wait_unblocked(int epoll, struct epoll_event *events, int most, const struct timespec *timeout,
                          const sigset_t *unblocked) {
    static bool is_missing;
    if (!is_missing) {
        const int count = epoll_pwait2(epoll, events, most, timeout, unblocked);
        if (count >= 0 || errno != ENOSYS)
            return count;
        is_missing = true;
    }
    struct pollfd ready = {.fd = epoll, .events = POLLIN};
    const int count = ppoll(&ready, 1, timeout, unblocked);
    return count > 0 ? epoll_wait(epoll, events, most, 0) : count;
}

/* Returns the time left until then, to the nanosecond: what is left of the present microsecond would be late. NULL:
 * forever. */
static const struct timespec *left_until(uint64_t until_us, struct timespec *left) {
    if (until_us > UINT64_MAX / 1000)
        return NULL;
    const uint64_t until = until_us * 1000, now = clock_ns(CLOCK_MONOTONIC), ns = until > now ? until - now : 0;
    *left = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return left;
}

int wait_events(int epoll, struct epoll_event *events, int most, uint64_t until_us, const sigset_t *unblocked) {
    struct timespec left;
    const struct timespec *timeout = left_until(until_us, &left);
    const int count = wait_unblocked(epoll, events, most, timeout, unblocked);
    if (unblocked && (count > 0 || (timeout && left.tv_sec == 0 && left.tv_nsec == 0)))
        wait_handle_signals(unblocked); /* the kernel delivered none */
    return count;
}

void wait_catch_signals(const int *signals, void (*handler)(int), sigset_t *unblocked) {
    struct sigaction action = {.sa_handler = handler};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int *s = signals; *s; s++)
        sigaddset(&blocked, *s);
    sigprocmask(SIG_BLOCK, &blocked, unblocked);
    for (const int *s = signals; *s; s++) {
        sigdelset(unblocked, *s);
        sigaction(*s, &action, NULL);
    }
}

volatile sig_atomic_t wait_is_ended;

static void on_end(int signal) {
    (void)signal;
    wait_is_ended = 1;
}

void wait_catch_end(sigset_t *unblocked) {
    sigset_t before;
    wait_catch_signals((const int[]){SIGINT, SIGTERM, 0}, on_end, unblocked ? unblocked : &before);
    if (!unblocked)
        sigprocmask(SIG_SETMASK, &before, NULL);
}
