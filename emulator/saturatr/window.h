/* How many data packets may be in flight: the window control of Keith Winstein's saturatr, which keeps a link's queue
 * full but bounded.
 *
 *     starts at 20;  + 1 per acknowledged packet while RTT < 0.75 s;  - 20 per acknowledged packet while RTT > 3 s;
 *     a heartbeat each second, regardless of the window
 *
 * Differences, and reasons:
 * - The ceiling is not 1500 packets but the greater of 1500 and best rate * (2 * base RTT + 0.25 s). It grows with the
 *   rate, so that it does not limit a fast link.
 * - + 2 per acknowledged packet while less than 20 ms of queue has built up, at any RTT and above the ceiling: then the
 *   link is not full; the acknowledgements are slow.
 * - Once more has been delivered, the floor is not 20 packets but best rate * (1.25 * base RTT + 50 ms), at least 20:
 *   after an outage the link recovers faster than acknowledgements do, and needs enough packets.
 * - If more than a tenth of a round trip's packets is lost, the link's queue overflows: more packets would be lost too.
 *   The window shrinks by the number of lost packets, does not grow for a round trip, and then grows by 1 per 16
 *   acknowledged packets until the queue is below 20 ms and below a quarter of the queue at the overflow. Until then
 *   the heartbeat comes after two round trips, because the last packets of a burst may be the lost ones.
 * - A burst has at most 64 packets, or 2 ms at the pacing rate of 4 times the best rate (at least 100 Mbps).
 * - If acknowledgements share the links with data in both directions, bursts of one direction delay acknowledgements of
 *   the other, which then come in bursts too (Zhang, Shenker, Clark: Observations on the Dynamics of a Congestion
 *   Control Algorithm, SIGCOMM 1991). Such a window is smooth: once the queue is full, it paces at 1.25 times the
 *   best rate.
 *
 * In flight are the packets above the highest acknowledged one, so lost packets do not count.
 * The best rate is the highest rate of arrivals in spans of at least 50 ms of the receiver's clock, over at least the
 * last 60 s. Sans-IO; all times are us of the sender's clock unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SAT_WINDOW_START    20u
#define SAT_LOWER_RTT_US    750000u
#define SAT_UPPER_RTT_US    3000000u
#define SAT_HEARTBEAT_US    1000000u
#define SAT_SATURATED_US    50000u /* queue that is long enough to start the recording */
#define SAT_RATE_BINS       7u
#define SAT_RATE_BIN_US     10000000u
#define SAT_NEVER           UINT64_MAX
#define SAT_WINDOW_HARD_CAP (1u << 20) /* packets; limits what a hostile receiver can cause */

typedef struct {
    uint64_t window;      /* packets */
    uint64_t next_seq;    /* of the next packet */
    uint64_t acked_until; /* highest acknowledged + 1 */
    uint64_t received;    /* packets counted by the receiver */
    uint64_t base_rtt_us; /* shortest RTT; SAT_NEVER before the first acknowledgement */
    uint64_t rtt_us;      /* of the latest acknowledgement */
    uint64_t delay_us;    /* one way, by two clocks: only differences are meaningful */
    uint64_t least_delay_us;
    uint64_t last_send_us;

    double rate_bins_pps[SAT_RATE_BINS]; /* best rate of each 10 s; the current one is rate_bin % SAT_RATE_BINS */
    uint64_t rate_bin;
    uint64_t span_start_us; /* receiver's clock */
    uint64_t span_start_packets;

    uint64_t round_end; /* packet whose acknowledgement ends the round */
    uint64_t round_start;
    uint64_t round_received; /* `received` at the start of the round */
    bool overflow;           /* the last round lost more than a tenth of its packets */
    bool cautious;           /* a round has overflowed, and the queue has not drained since */
    uint64_t full_queue_us;  /* queue at the overflow */
    uint64_t credit;         /* packets acknowledged since a cautious window last grew */

    bool smooth;
    double tokens; /* packets that pacing allows */
    uint64_t tokens_us;
} sat_window;

void sat_window_init(sat_window *w, uint64_t now);
/* Handles an acknowledgement. highest: highest sequence number received; received: number of packets; echo_us: when the
 * acknowledged packet was sent; received_us: when it arrived (receiver's clock). Ignores impossible values. */
void sat_window_on_ack(sat_window *w, uint64_t highest, uint64_t received, uint64_t echo_us, uint64_t received_us,
                       uint64_t now);
/* Returns how many packets may be sent now. */
uint64_t sat_window_allowance(sat_window *w, uint64_t now);
void sat_window_on_sent(sat_window *w, uint64_t packets, uint64_t now);
/* Returns when to ask again if no acknowledgement comes before. */
uint64_t sat_window_next(const sat_window *w, uint64_t now);

uint64_t sat_window_in_flight(const sat_window *w);
/* Returns the best rate of the last 60 to 70 s, in packets per second. */
double sat_window_best_pps(const sat_window *w);
/* Returns how long the last acknowledged packet queued: its one-way delay minus the least one, in us. */
uint64_t sat_window_queue_us(const sat_window *w);
/* Whether that is at least 50 ms, or the queue overflows. */
bool sat_window_saturated(const sat_window *w);
