/* From the arrivals of trains (train.h) to a light trace; see docs/reference/saturatr.md, and emulator/link/light.h for
 * the use of one. Sans-IO. All times are us of the session. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SAT_OPEN_TRAINS  64u /* a packet that this many later trains have overtaken is lost */
#define SAT_HEAVY_TRAINS 8u  /* least packets of a train for sat_light_heavy() */

/* A row of the trace. */
typedef struct {
    uint32_t at_ms;             /* when the train was sent, rounded down */
    uint32_t delay_ms;          /* one way, of its first packet, to the nearest ms */
    const uint32_t *offsets_ms; /* `count` arrivals minus the first packet's, to the nearest ms; ascending */
    uint32_t count;
} sat_light_row;

typedef void sat_light_on_row(void *user, const sat_light_row *row);

/* Sums over all rows of one place in the train. */
typedef struct {
    double offset_sum_us;
    uint64_t count; /* packets that arrived */
} sat_light_place;

/* A train whose packets may still come. */
typedef struct {
    uint64_t arrived;     /* packets */
    int64_t sent_us;      /* of its first packet; of another one while the first is missing */
    int64_t *received_us; /* of each packet; SAT_MISSING: not arrived */
} sat_open_train;

typedef struct {
    uint32_t packets; /* of a train */
    uint64_t duration_us;
    uint64_t trains;                      /* trains sent within the recording, as far as is known */
    uint64_t trains_end;                  /* number of the last train + 1 */
    uint64_t first_open;                  /* number of the oldest open train */
    sat_open_train open[SAT_OPEN_TRAINS]; /* train n is at n % SAT_OPEN_TRAINS */
    uint32_t *offsets_ms;
    uint64_t next_ms; /* least time of the next row */
    sat_light_on_row *on_row;
    void *user;

    uint64_t rows;
    uint64_t arrived;         /* packets of trains within the recording */
    uint64_t late;            /* packets that came after 64 later trains; they count as lost */
    uint64_t negative_delays; /* rows with a delay below 0, by the clocks' error; 0 in the trace */
    uint64_t left_out;        /* trains with impossible times */
    uint32_t last_delay_ms;   /* of the last row */
    int64_t least_delay_us;
    double delay_sum_us;
    double last_offset_sum_us; /* sum of the largest offset of each row */
    sat_light_place *places;   /* one for each packet of a train */
} sat_light;

/* packets: of a train. sent: packets sent in all. Calls on_row for each row, in order. False without memory. */
bool sat_light_init(sat_light *light, uint32_t packets, uint64_t sent, uint64_t duration_us, sat_light_on_row *on_row,
                    void *user);
void sat_light_free(sat_light *light);
/* Adds a data packet. Ignores trains that were sent outside of [0, duration). */
void sat_light_add(sat_light *light, uint64_t seq, int64_t sent_us, int64_t received_us);
/* Call it after the last packet. */
void sat_light_finish(sat_light *light);

/* Trains whose first packet was lost, which have no row. */
uint64_t sat_light_lost_trains(const sat_light *light);
uint64_t sat_light_lost_packets(const sat_light *light);

/* Finds where trains become heavy load: the mean spacing of the last quarter of the packets over all trains, in us, and
 * the first packet (from 0) after which each quarter of a train has that spacing within 10 %. False for trains of less
 * than 8 packets, if no packet of a place arrived, or if the last packets come at once. */
bool sat_light_heavy(const sat_light *light, double *spacing_us, uint32_t *from);
