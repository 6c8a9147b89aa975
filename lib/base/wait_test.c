#include "tests/unit.h"
#include "base/clock.h"
#include "base/wait.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void take_epoll_pwait2_away(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(99);
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

/* Checks that wait_events() waits, returns events and handles unblocked signals. Returns 0, or the line of a
 * failure. */
static int what_is_wrong(void) {
#define CHECK(condition)                                                                                               \
    if (!(condition))                                                                                                  \
    return __LINE__
    const int epoll = epoll_create1(0), counter = eventfd(0, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7}, events[2];
    sigset_t blocked, none;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event) == 0);
    for (int k = 0; k < 2; k++) {
        const uint64_t begin = clock_us();
        CHECK(wait_events(epoll, events, 2, begin + 2300, NULL) == 0 && clock_us() - begin >= 2300);
    }
    CHECK(eventfd_write(counter, 1) == 0);
    CHECK(wait_events(epoll, events, 2, WAIT_FOREVER, NULL) == 1 && events[0].data.u64 == 7);
    CHECK(eventfd_read(counter, &(eventfd_t){0}) == 0);
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_signal}, NULL);
    raise(SIGUSR1);
    CHECK(wait_events(epoll, events, 2, clock_us() + 100, NULL) == 0 && signals == 0);
    CHECK(wait_events(epoll, events, 2, WAIT_FOREVER, &none) == -1 && errno == EINTR && signals == 1);
    raise(SIGUSR1);
    CHECK(wait_events(epoll, events, 2, 0, &none) <= 0 && signals == 2); /* without any wait */
    CHECK(eventfd_write(counter, 1) == 0);
    raise(SIGUSR1);
    CHECK(wait_events(epoll, events, 2, WAIT_FOREVER, NULL) == 1 && signals == 2);
    CHECK(wait_events(epoll, events, 2, WAIT_FOREVER, &none) == 1 && signals == 3); /* also if events are ready */
    return 0;
}

static void check_in_a_process_of_its_own(bool is_missing) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        if (is_missing)
            take_epoll_pwait2_away();
        _exit(what_is_wrong());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(it_waits_for_events_time_and_signals) {
    check_in_a_process_of_its_own(false);
}

TEST(it_does_so_where_the_kernel_has_no_epoll_pwait2) {
    check_in_a_process_of_its_own(true);
}

TEST_MAIN(NULL, NULL)
