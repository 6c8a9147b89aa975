/* HyStart++ (RFC 9406): leaves slow start when the delay rises, before the loss. For the first slow start of a
 * connection only (section 4.3), and for a paced sender (L is infinite).
 *
 * Rounds are told by time instead of by sequence number: a round ends when a packet that was sent after its beginning
 * is acknowledged. At most one RTT sample is taken at any one instant, so that an aggregated ACK for many packets
 * counts once: N_RTT_SAMPLE independent looks at the path are needed before its delay is judged. */
#ifndef XL_CONGESTION_HYSTART_H
#define XL_CONGESTION_HYSTART_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t round_start;                 /* packets sent from here on belong to the next round */
    uint64_t last_min_us, current_min_us; /* smallest RTT of the round before and of this one; UINT64_MAX none */
    uint64_t baseline_us;                 /* current_min_us when Conservative Slow Start was entered */
    uint64_t last_sample;                 /* time of it */
    uint32_t samples;                     /* in this round */
    uint32_t css_rounds;                  /* begun in Conservative Slow Start */
    bool started, in_css;
} xl_hystart;

void xl_hystart_init(xl_hystart *);
/* A path whose smallest RTT is rtt_us has a queue where the RTT is larger by so much (RFC 9406 section 4.2). */
uint64_t xl_hystart_threshold(uint64_t rtt_us);
/* An acknowledged packet in slow start. rtt_us: the latest sample, 0 none. True: slow start is over, set ssthresh. */
bool xl_hystart_on_ack(xl_hystart *, uint64_t now, uint64_t sent_time, uint64_t rtt_us);
/* By how much the window grows for `bytes` acknowledged. */
uint64_t xl_hystart_growth(const xl_hystart *, uint64_t bytes);

#endif
