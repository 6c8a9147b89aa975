/* HyStart++ (RFC 9406) ends slow start when the delay rises, before packets are lost. It is used in the first slow
 * start of a connection (section 4.3) with a paced sender (L is infinite).
 *
 * Rounds are delimited by time instead of sequence number: a round ends when a packet that was sent after its start is
 * acknowledged. All samples of one instant count as one, so that an aggregated ACK gives one of the N_RTT_SAMPLE
 * samples that a decision needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t round_start;                 /* packets sent from this time on belong to the next round */
    uint64_t last_min_us, current_min_us; /* smallest RTT of the previous and of this round; UINT64_MAX: none */
    uint64_t baseline_us;                 /* current_min_us when Conservative Slow Start was entered */
    uint64_t last_sample;                 /* time of the last sample */
    uint32_t samples;                     /* number of samples in this round */
    uint32_t css_rounds;                  /* number of rounds begun in Conservative Slow Start */
    bool started, in_css;
} xl_hystart;

void xl_hystart_init(xl_hystart *);
/* The increase of the RTT over the smallest RTT rtt_us that indicates a queue (RFC 9406 section 4.2). */
uint64_t xl_hystart_threshold(uint64_t rtt_us);
/* Processes an acknowledged packet in slow start. rtt_us: latest sample, 0: none. True: slow start ends; the caller
 * sets ssthresh. */
bool xl_hystart_on_ack(xl_hystart *, uint64_t now, uint64_t sent_time, uint64_t rtt_us);
/* The window's increase for `bytes` acknowledged. */
uint64_t xl_hystart_growth(const xl_hystart *, uint64_t bytes);
