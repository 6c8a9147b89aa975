#include "emulator/mpshell/timers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/text_file.h"
#include "emulator/link/report.h"
#include "emulator/mpshell/awake.h"

#define MOST_CORES    64u
#define PERIOD_US     2130u /* no multiple of the kernel's tick; some two wake-ups per slot and core */
#define FIFO_PRIORITY 51    /* the packet loop has 50 */
#define STACK_BYTES   (64u << 10)

typedef struct {
    mp_timers *timers;
    pthread_t thread;
    size_t core;
    bool sched_fifo;
    link_lateness lateness;
    mp_series series;
    uint64_t late_us;
    uint64_t run_delay_ns;
} probe_timer;

struct mp_timers {
    _Atomic uint64_t t0_us; /* 0: not set yet */
    atomic_bool ended;
    size_t count;
    probe_timer each[];
};

/* Returns the time that this thread waited for a core while it could have run, in ns; 0 if the kernel does not count
 * it. Second value of schedstat (Linux: Documentation/scheduler/sched-stats). */
static uint64_t own_run_delay_ns(void) {
    char text[96];
    unsigned long long ran, waited;
    bool known =
        file_peek("/proc/thread-self/schedstat", text, sizeof text) && sscanf(text, "%llu %llu", &ran, &waited) == 2;
    return known ? waited : 0;
}

static void record(probe_timer *timer, uint64_t since_t0_us, uint64_t late_us) {
    link_lateness_record(&timer->lateness, late_us);
    mp_series_raise(&timer->series, since_t0_us, late_us);
    timer->late_us += late_us;
}

/* The next wake-up is a period after this one, so that one delay is not counted twice. */
static void *sleep_and_wake(void *context) {
    probe_timer *timer = context;
    struct sched_param parameters = {.sched_priority = FIFO_PRIORITY};
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(timer->core, &set);
    prctl(PR_SET_NAME, "mpshell-timer");
    prctl(PR_SET_TIMERSLACK, 1ul);
    timer->sched_fifo = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
    sched_setaffinity(0, sizeof set, &set);
    uint64_t delayed_before = own_run_delay_ns();
    bool begun = false;
    for (uint64_t due = clock_us() + PERIOD_US; !atomic_load(&timer->timers->ended);) {
        clock_sleep_until(due);
        uint64_t woken = clock_us();
        uint64_t t0 = atomic_load(&timer->timers->t0_us);
        if (t0 > 0 && !begun)
            delayed_before = own_run_delay_ns();
        begun = t0 > 0;
        if (begun && due >= t0)
            record(timer, due - t0, woken - due);
        due = woken + PERIOD_US;
    }
    timer->run_delay_ns = own_run_delay_ns() - delayed_before;
    return NULL;
}

mp_timers *mp_timers_start(void) {
    size_t cores[MOST_CORES];
    size_t count = mp_awake_cores(cores, MOST_CORES);
    mp_timers *timers = calloc(1, sizeof *timers + count * sizeof timers->each[0]);
    pthread_attr_t attributes;
    if (!timers)
        return NULL;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < count; i++) {
        probe_timer *timer = &timers->each[timers->count];
        *timer = (probe_timer){.timers = timers, .core = cores[i]};
        timers->count += pthread_create(&timer->thread, &attributes, sleep_and_wake, timer) == 0;
    }
    pthread_attr_destroy(&attributes);
    if (timers->count == 0) {
        free(timers);
        timers = NULL;
    }
    return timers;
}

void mp_timers_begin(mp_timers *timers, uint64_t t0_us) {
    if (timers)
        atomic_store(&timers->t0_us, t0_us);
}

void mp_timers_stop(mp_timers *timers, mp_timers_found *found) {
    *found = (mp_timers_found){.cores = 0};
    if (!timers)
        return;
    atomic_store(&timers->ended, true);
    found->sched_fifo = true;
    for (size_t i = 0; i < timers->count; i++) {
        probe_timer *timer = &timers->each[i];
        pthread_join(timer->thread, NULL);
        link_lateness_merge(&found->lateness, &timer->lateness);
        mp_series_merge(&found->series, &timer->series);
        mp_series_free(&timer->series);
        found->cores++;
        found->sched_fifo &= timer->sched_fifo;
        found->late_s += (double)timer->late_us / 1e6;
        found->run_delay_s += (double)timer->run_delay_ns / 1e9;
    }
    free(timers);
}

json_t *mp_timers_report(const mp_timers_found *found) {
    if (found->cores == 0)
        return json_null();
    return json_pack("{s:b,s:i,s:f,s:f,s:o}", "sched_fifo", (int)found->sched_fifo, "cores", (int)found->cores,
                     "late_s", found->late_s, "run_delay_s", found->run_delay_s, "lateness_us",
                     link_report_lateness(&found->lateness));
}
