/* The delay of a cellular link under light load, if a path has a light trace (Sentosa et al., CellReplay, NSDI 2025).
 * The link's own trace, recorded with a sender that never stops, is the heavy trace.
 *
 * A row of a light trace is one short train of packets: the time it was sent, the one-way delay of its first packet,
 * and the offset of each opportunity from the arrival of that packet. Lines are "ms delay_ms offset_ms ...": whole
 * numbers, separated by one space, times not descending. The last time is the period; the last row's delay ends the
 * interpolation.
 *
 * A packet of n bytes comes at t. `last` is when the packet before it left, by the same rules; b, d and o[0], o[1], ...
 * are the start, the delay and the offsets of the burst.
 *
 *     first packet, or t + d >= last + gap + 1 ms:
 *                              a burst begins. b = t; o is that of the row before t; d is interpolated between this
 *                              row and the next one, and cut to whole ms. Leaves at b + d.
 *     else, the row has room:  leaves at b + d + o[i], of the first i with o[i] >= t - b, cut to whole ms, that has n
 *                              bytes
 *     else:                    goes to the queue of the heavy trace, at t + max(d, last offset)
 *
 * Times are compared in whole ms, as in the trace, because a sender writes the packets of one burst some us apart.
 *
 * The latency of a packet's size is added to the time at which it leaves, if order allows. A packet bypasses the queue
 * if the queue is empty and has served no packet at the same time. A packet that would leave before its predecessor
 * leaves together with it, into the queue. So packets stay in order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/text.h"

typedef struct {
    uint64_t at_us, delay_us;
    size_t first, count; /* its part of the offsets; count may be 0 */
} link_light_row;

typedef struct {
    link_light_row *rows; /* at least 1, times not descending */
    size_t count;
    uint64_t *offsets_us; /* of all rows */
    size_t offsets;
} link_light_trace;

/* Latency of packets of 100, 200, 300, ... bytes, which is added to the light trace's delay; may be negative.
 * Interpolated between sizes, constant outside. Lines are "bytes ms". */
typedef struct {
    double *ms;
    size_t count; /* at least 1 */
} link_size_latency;

/* Of a link_light_trace and a link_size_latency. */
extern const link_text_form link_light_trace_form, link_size_latency_form;
void link_light_trace_free(void *trace);
void link_size_latency_free(void *latency);

/* Returns the delay of a burst that begins at trace time t_us. *row: its row; NULL is allowed. A binary search. */
uint64_t link_light_delay_at(const link_light_trace *trace, uint64_t t_us, size_t *row);

typedef struct {
    const link_light_trace *trace; /* borrowed; NULL: the link has a plain delay */
    const link_size_latency *size; /* borrowed; NULL: none */
    uint64_t gap_us;               /* how long nothing leaves before a burst begins */
    uint32_t opportunity_bytes;    /* bytes per offset */
} link_light;

/* The present burst of one direction. All 0: no packet has come. */
typedef struct {
    bool begun;
    uint64_t begin_us, delay_us, last_us;
    int64_t end_us; /* when the last packet leaves, with the latency of its size, which may be negative */
    size_t row, next;
    uint32_t left; /* bytes of the opportunity `next` */
} link_burst;

/* Returns when a packet that comes at `now` leaves the delay. t_us: trace time. *direct: it bypasses the queue. */
uint64_t link_burst_next(link_burst *burst, const link_light *light, uint64_t now, uint64_t t_us, uint32_t bytes,
                         bool *direct);
