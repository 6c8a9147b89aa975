/* Waits for events to the microsecond, without epoll_pwait2(2) too: before Linux 5.11, and under valgrind. */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#define WAIT_FOREVER UINT64_MAX

/* As epoll_pwait2(2): for timeout_us at most, with these signals unblocked alone; NULL leaves them as they are. Signals
 * are handled where events are ready, too: a flood of datagrams does not keep them back. Returns the number of events,
 * 0 at the timeout, -1 with errno set. */
int wait_events(int epoll, struct epoll_event *events, int most, uint64_t timeout_us, const sigset_t *unblocked);
/* Handles the signals that are pending. Call it after ppoll(2) has returned descriptors: the kernel delivers none of
 * `unblocked` then. */
void wait_handle_signals(const sigset_t *unblocked);
/* The signals (0 ends the list) go to the handler, and come only while *unblocked is the mask, as in wait_events(). */
void wait_catch_signals(const int *signals, void (*handler)(int), sigset_t *unblocked);

#endif
