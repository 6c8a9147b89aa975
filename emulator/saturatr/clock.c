#include "emulator/saturatr/clock.h"

#include <math.h>
#include <stdlib.h>

#define LONGEST_RTT_US 60000000u

void sat_clock_add(sat_clock *clock, uint64_t t1, uint64_t t2, uint64_t t3, uint64_t t4, bool late) {
    sat_clock_sample *best = late ? &clock->late : &clock->early;
    if (t4 < t1 || t3 < t2 || t4 - t1 < t3 - t2 || t4 - t1 > LONGEST_RTT_US || t3 > INT64_MAX / 4 || t4 > INT64_MAX / 4)
        return;
    clock->exchanges++;
    uint64_t rtt = (t4 - t1) - (t3 - t2);
    if (!best->valid || rtt < best->rtt_us) {
        best->valid = true;
        best->at_us = t4;
        best->rtt_us = rtt;
        best->twice_us = ((int64_t)t2 - (int64_t)t1) + ((int64_t)t3 - (int64_t)t4);
    }
}

static bool drifts(const sat_clock *clock) {
    uint64_t gap = (uint64_t)llabs(clock->late.twice_us - clock->early.twice_us);
    return clock->early.valid && clock->late.valid && clock->late.at_us > clock->early.at_us &&
           gap > clock->early.rtt_us + clock->late.rtt_us;
}

/* Without drift: returns the better of the two samples. */
static const sat_clock_sample *better(const sat_clock *clock) {
    bool late = clock->late.valid && (!clock->early.valid || clock->late.rtt_us < clock->early.rtt_us);
    return late ? &clock->late : &clock->early;
}

double sat_clock_drift_ppm(const sat_clock *clock) {
    if (!drifts(clock))
        return 0.0;
    double change_us = (double)(clock->late.twice_us - clock->early.twice_us) / 2.0;
    return change_us * 1e6 / (double)(clock->late.at_us - clock->early.at_us);
}

double sat_clock_offset_us(const sat_clock *clock, uint64_t client_us) {
    if (!drifts(clock))
        return (double)better(clock)->twice_us / 2.0;
    double elapsed_s = ((double)client_us - (double)clock->early.at_us) / 1e6;
    return (double)clock->early.twice_us / 2.0 + elapsed_s * sat_clock_drift_ppm(clock);
}

double sat_clock_uncertainty_us(const sat_clock *clock) {
    if (!drifts(clock))
        return (double)better(clock)->rtt_us / 2.0;
    return (double)(clock->early.rtt_us > clock->late.rtt_us ? clock->early.rtt_us : clock->late.rtt_us) / 2.0;
}

uint64_t sat_clock_to_client(const sat_clock *clock, uint64_t server_us) {
    double offset = sat_clock_offset_us(clock, server_us);
    uint64_t first = server_us - (uint64_t)llround(offset);
    return server_us - (uint64_t)llround(sat_clock_offset_us(clock, first));
}
