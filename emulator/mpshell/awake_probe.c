#include "emulator/mpshell/awake_probe.h"
#include "base/clock.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define TURNS         3        /* of each kind, alternating, so that other load affects both alike */
#define PERIOD_NS     1130000l /* long enough for a core to sleep, no multiple of the kernel's tick */
#define FIFO_PRIORITY 50
#define WARM_UP       2 /* samples after a change that are ignored */

bool mp_awake_is_worth(const mp_awake_probe *probe) {
    double without = probe->without.p95_us;
    double with = probe->with.p95_us;
    return probe->made && with < MP_AWAKE_RATIO * without && without - with >= MP_AWAKE_GAIN_US;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double nearest_rank(const double *sorted, size_t count, size_t percent) {
    size_t rank = (count * percent + 99) / 100;
    return sorted[rank > 0 ? rank - 1 : 0];
}

mp_awake_lateness mp_awake_quantiles(double *samples_us, size_t count) {
    if (count == 0)
        return (mp_awake_lateness){.p50_us = 0};
    qsort(samples_us, count, sizeof *samples_us, compare);
    return (mp_awake_lateness){.p50_us = nearest_rank(samples_us, count, 50),
                               .p95_us = nearest_rank(samples_us, count, 95),
                               .p99_us = nearest_rank(samples_us, count, 99)};
}

static double sleep_once(void) {
    const uint64_t due = clock_ns(CLOCK_MONOTONIC) + PERIOD_NS;
    const struct timespec at = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
    return (double)(clock_ns(CLOCK_MONOTONIC) - due) / 1e3;
}

static size_t sample(double *into, size_t count) {
    for (size_t i = 0; i < WARM_UP; i++)
        sleep_once();
    for (size_t i = 0; i < count; i++)
        into[i] = sleep_once();
    return count;
}

void mp_awake_measure(mp_awake_probe *probe, void (*keep)(void *context, bool awake), void *context) {
    static double without[MP_AWAKE_SAMPLES];
    static double with[MP_AWAKE_SAMPLES];
    struct sched_param parameters = {.sched_priority = FIFO_PRIORITY};
    size_t taken = 0;
    prctl(PR_SET_TIMERSLACK, 1ul);
    probe->sched_fifo = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
    for (size_t turn = 0; turn < TURNS; turn++) {
        sample(without + taken, MP_AWAKE_SAMPLES / TURNS);
        keep(context, true);
        taken += sample(with + taken, MP_AWAKE_SAMPLES / TURNS);
        keep(context, false);
    }
    if (probe->sched_fifo) {
        parameters.sched_priority = 0;
        sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &parameters);
    }
    probe->without = mp_awake_quantiles(without, taken);
    probe->with = mp_awake_quantiles(with, taken);
    probe->age_s = 0;
    probe->made = true;
}
