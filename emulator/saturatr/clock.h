/* The difference of two monotonic clocks, from exchanges of timestamps (as in RFC 5905, section 8): a probe leaves at
 * t1, arrives at t2, is answered at t3, and the answer arrives at t4; t1 and t4 on the client's clock, t2 and t3 on the
 * server's. Then offset = ((t2 - t1) + (t3 - t4)) / 2, wrong by at most half of the round trip (t4 - t1) - (t3 - t2).
 *
 * Of the early and of the late exchanges, the one with the shortest round trip counts. If the two contradict each other
 * (their error intervals do not overlap), the clocks drift, and the offset is interpolated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool valid;
    uint64_t at_us;   /* client's clock */
    int64_t twice_us; /* twice the offset: server's clock minus client's */
    uint64_t rtt_us;
} sat_clock_sample;

typedef struct {
    sat_clock_sample early, late;
    uint64_t exchanges; /* valid ones; 0: the offset is unknown */
} sat_clock;

/* Adds an exchange. late: of the recording's second half or later. Ignores impossible times. */
void sat_clock_add(sat_clock *clock, uint64_t t1, uint64_t t2, uint64_t t3, uint64_t t4, bool late);
/* Returns the server's clock minus the client's at that time of the client's clock, in us. */
double sat_clock_offset_us(const sat_clock *clock, uint64_t client_us);
/* Returns the largest error of the offset, in us. */
double sat_clock_uncertainty_us(const sat_clock *clock);
/* Returns by how many parts per million the server's clock is faster; 0 if drift cannot be distinguished from error. */
double sat_clock_drift_ppm(const sat_clock *clock);
/* Converts a time of the server's clock to the client's. */
uint64_t sat_clock_to_client(const sat_clock *clock, uint64_t server_us);
