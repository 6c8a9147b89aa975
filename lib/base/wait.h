/* Waits for events until a time, exact to the microsecond. Works without epoll_pwait2(2) too: before Linux 5.11, and
 * under valgrind. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#define WAIT_FOREVER UINT64_MAX

/* Like epoll_pwait2(2), but waits until until_us of CLOCK_MONOTONIC, with the signal mask `unblocked`; NULL: with the
 * current mask. Pending signals are handled even if events are ready or the time has passed, so that neither a flood of
 * datagrams nor due timers delay them. Returns the number of events, 0 at the timeout, -1 with errno set. */
int wait_events(int epoll, struct epoll_event *events, int most, uint64_t until_us, const sigset_t *unblocked);
/* Handles pending signals. Call it after ppoll(2) has returned descriptors, because the kernel then delivers no signal.
 */
void wait_handle_signals(const sigset_t *unblocked);
/* Installs the handler for these signals (0 ends the list) and blocks them. *unblocked receives the signal mask for
 * wait_events(), which unblocks them. */
void wait_catch_signals(const int *signals, void (*handler)(int), sigset_t *unblocked);

/* Set by SIGINT and SIGTERM after wait_catch_end(). */
extern volatile sig_atomic_t wait_is_ended;
/* Like wait_catch_signals() for these two. unblocked NULL: does not block them. */
void wait_catch_end(sigset_t *unblocked);
