/* How late timers fire, and whether keeping the cores awake helps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MP_AWAKE_SAMPLES 150 /* of each kind */
/* Keeping the cores awake helps if p95(with) < 0.7 * p95(without) and p95(without) - p95(with) >= 30 us, for example 72
 * us with and 150 us without. (A p99 of so few samples would depend on two of them.) */
#define MP_AWAKE_RATIO   0.7
#define MP_AWAKE_GAIN_US 30.0

typedef struct {
    double p50_us;
    double p95_us;
    double p99_us;
} mp_awake_lateness;

typedef struct {
    bool made;
    bool sched_fifo; /* measured under SCHED_FIFO; false: as an ordinary process */
    double age_s;    /* age of a probe by another mpshell of this machine; 0: made by this one */
    mp_awake_lateness without;
    mp_awake_lateness with;
} mp_awake_probe;

/* Whether the probe shows that keeping the cores awake helps, by the formula above. */
bool mp_awake_is_worth(const mp_awake_probe *probe);
/* Returns quantiles of count lateness samples by nearest rank. Sorts them in place. */
mp_awake_lateness mp_awake_quantiles(double *samples_us, size_t count);

/* Measures alternately without and with: keep(context, true) starts to keep the cores awake, keep(context, false) ends
 * it. Starts and ends without. Runs under SCHED_FIFO if permitted. */
void mp_awake_measure(mp_awake_probe *probe, void (*keep)(void *context, bool awake), void *context);
