/* Traffic of others on a link: packets that nobody sends and nobody receives, at a rate that does not depend on their
 * delay or loss (open loop). They join the link's queue beside the packets whose delay has ended, and are served or
 * dropped there. They appear only in counters and in the log.
 *
 *     rate r, packets of n bytes:   a packet every 8 (n + 4) / r seconds, or exponential gaps with this mean
 *     on/off:                       no packet in the off times
 *     profile:                      r over time, in place of one rate
 *
 * Sans-IO: times are us since t0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/link/steps.h"
#include "emulator/link/onoff.h"
#include "emulator/link/packet.h"
#include "emulator/link/rng.h"

#define LINK_CROSS_BYTES_LEAST 28u /* IPv4 and UDP headers */
#define LINK_CROSS_NEEDS_LIMIT "others' traffic needs a queue with a limit; give queue=droptail:packets=N"

/* The setting. All zero: no such traffic. */
typedef struct {
    uint64_t rate_bps;         /* in IP bytes + 4 per packet, as a link's rate */
    const link_steps *profile; /* borrowed; replaces rate_bps; NULL: none */
    link_onoff onoff;
    bool random_gaps; /* exponential, as of many senders; false: even */
    uint32_t bytes;   /* of each IP packet; 0 = 1500 */
} link_cross;

/* Starts zeroed: no packet. */
typedef struct {
    link_cross set;
    link_onoff_state onoff;
    link_rng rng;
    uint64_t offset_us; /* position in the profile at t0 */
    uint64_t at_us;     /* time to which `need` applies */
    int64_t need;       /* traffic until the next packet, in bit/s times us */
    uint64_t next_us;   /* time of the next packet; UINT64_MAX: not computed yet */
} link_cross_state;

/* Parses the rate of a setting or an event: at most LINK_CROSS_MOST_BPS, or "off". */
bool link_cross_parse_rate(const char *text, uint64_t *rate_bps);

static inline bool link_cross_is_on(const link_cross *set) {
    return set->rate_bps > 0 || set->profile;
}

/* No packet comes before start_us. */
void link_cross_init(link_cross_state *state, const link_cross *set, uint64_t seed, uint64_t offset_us,
                     uint64_t start_us);
/* Returns the time of the next packet if it is at most `until`, else UINT64_MAX. `until` must not decrease. */
uint64_t link_cross_next(link_cross_state *state, uint64_t until);
/* Moves on to the packet after that one. */
void link_cross_take(link_cross_state *state);
/* Fills in the packet: headers of UDP over IPv4, of a separate flow. */
void link_cross_fill(const link_cross_state *state, link_packet *packet);
