/* Round-trip time estimation, RFC 9002 section 5, microseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define XL_INITIAL_RTT_US 333000
#define XL_GRANULARITY_US 1000

typedef struct {
    uint64_t latest, min, smoothed, var;
    bool has_sample;
} xl_rtt;

void xl_rtt_init(xl_rtt *);
/* Sets the estimate before the first sample. */
void xl_rtt_start_at(xl_rtt *, uint64_t initial_us);
/* ack_delay_us: as the peer reported it, already limited to max_ack_delay once the handshake is confirmed. */
void xl_rtt_sample(xl_rtt *, uint64_t latest_us, uint64_t ack_delay_us);
/* After persistent congestion (section 5.2) the latest sample becomes the minimum, because the path may have become
 * longer. */
void xl_rtt_restart_min(xl_rtt *);
uint64_t xl_rtt_pto(const xl_rtt *, uint64_t max_ack_delay_us); /* 6.2.1: smoothed + max(4 var, granularity) + delay */
uint64_t xl_rtt_loss_delay(const xl_rtt *);                     /* 6.1.2: 9/8 max(smoothed, latest), >= granularity */
uint64_t xl_rtt_persistent(const xl_rtt *, uint64_t max_ack_delay_us); /* 7.6.1, threshold 3 */
