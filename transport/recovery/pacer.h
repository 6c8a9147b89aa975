/* Pacing by a token bucket (RFC 9002 section 7.7): tokens grow at `rate` bytes/s up to `burst` bytes; a packet may
 * leave when tokens > 0. Invariant: -mtu <= tokens <= burst. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t tokens; /* bytes x 1e6, so that microseconds accumulate exactly */
    uint64_t rate;  /* bytes per second; 0 = unlimited */
    uint64_t burst; /* bytes */
    uint64_t updated;
} xl_pacer;

void xl_pacer_init(xl_pacer *, uint64_t burst_bytes, uint64_t now);
/* Changes the capacity of the bucket. What it lacks of being full stays the same. */
void xl_pacer_set_burst(xl_pacer *, uint64_t burst_bytes, uint64_t now);
void xl_pacer_set_rate(xl_pacer *, uint64_t bytes_per_second, uint64_t now);
/* Earliest time at which a packet may leave; `now` if it may leave now. */
uint64_t xl_pacer_next(const xl_pacer *, uint64_t now);
bool xl_pacer_delays(const xl_pacer *, uint64_t now); /* whether xl_pacer_next() > now */
void xl_pacer_sent(xl_pacer *, uint64_t bytes, uint64_t now);
