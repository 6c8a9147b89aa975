#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>

void wait_handle_signals(const sigset_t *unblocked) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, unblocked, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int wait_unblocked(int epoll, struct epoll_event *events, int most, uint64_t timeout_us,
                          const sigset_t *unblocked) {
    static bool is_missing;
    const struct timespec some = {.tv_sec = (time_t)(timeout_us / 1000000),
                                  .tv_nsec = (long)(timeout_us % 1000000) * 1000};
    const struct timespec *timeout = timeout_us == WAIT_FOREVER ? NULL : &some;
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

int wait_events(int epoll, struct epoll_event *events, int most, uint64_t timeout_us, const sigset_t *unblocked) {
    const int count = wait_unblocked(epoll, events, most, timeout_us, unblocked);
    if (unblocked && (count > 0 || timeout_us == 0)) /* the kernel then delivers no signal */
        wait_handle_signals(unblocked);
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
