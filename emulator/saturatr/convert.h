/* From arrivals to a trace of delivery opportunities; see docs/reference/saturatr.md. Sans-IO. */
#pragma once

#include <stdint.h>

#define SAT_IDLE_QUEUE_US 5000u   /* a packet that queued for less found the link nearly idle */
#define SAT_IDLE_BIN_US   100000u /* length of the spans in which idleness is counted */

/* Sums the bytes that arrive in [0, duration) and determines the ms in which each opportunity was complete. */
typedef struct {
    uint64_t duration_us;
    uint64_t carry_bytes; /* of the incomplete opportunity */
    uint64_t last_us;
    uint64_t packets, bytes; /* bytes: IP length + 4 per packet */
    uint64_t opportunities;
    uint64_t disordered; /* arrivals with an earlier timestamp than their predecessor */
    uint64_t idle_bins;  /* spans of 100 ms in which some data packet had queued for less than 5 ms */
    uint64_t last_idle_bin;
} sat_converter;

void sat_converter_init(sat_converter *converter, uint64_t duration_us);
/* Adds an arrival at t_us of session time. queued_us: its time in the queue, at least SAT_IDLE_QUEUE_US if unknown.
 * Returns how many opportunities it completes, all at *at_ms. Ignores arrivals outside of [0, duration). */
uint32_t sat_converter_add(sat_converter *converter, int64_t t_us, uint32_t ip_bytes, uint64_t queued_us,
                           uint32_t *at_ms);
/* Returns the trace's last line, its period: the duration in ms, rounded up. Call it once, after the last arrival. */
uint32_t sat_converter_finish(sat_converter *converter);
