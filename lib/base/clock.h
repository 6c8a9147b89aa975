/* The system's clocks, for programs on sockets and devices. Code that the simulator shares takes the time as an
 * argument. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* CLOCK_MONOTONIC. */
static inline uint64_t clock_us(void) {
    return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static inline void clock_sleep_until(uint64_t at_us) {
    const struct timespec at = {.tv_sec = (time_t)(at_us / 1000000u), .tv_nsec = (long)(at_us % 1000000u) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

/* User plus system processor time, s. */
static inline double clock_used_s(const struct rusage *used) {
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6;
}
