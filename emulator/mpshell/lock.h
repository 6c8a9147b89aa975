/* Locks between the packet loop and other threads. */
#pragma once

#include <pthread.h>

/* Prepares a mutex with priority inheritance: the loop runs at real-time priority and must not wait for a holder that
 * was preempted. */
static inline void mp_lock_init(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}
