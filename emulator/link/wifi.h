/* The setting of a Wi-Fi link: how stations share the medium, and the airtime of a transmission. Used by air.h.
 *
 * The medium is that of 802.11 with 20 MHz and OFDM. A transmission (A-MPDU) of IP packets of n bytes takes
 *
 *     preamble + sum of 8 * mpdu(n) / rate,   mpdu(n) = n + 42, rounded up to a multiple of 4
 *
 * The 42 bytes are LLC 8, MAC header with QoS 26, FCS 4, and the delimiter between frames 4 (802.11-2020, 9.2.4 and
 * 9.7.1). After SIFS comes the block ACK. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/loss.h"

#define LINK_WIFI_WINDOW      64u /* MPDUs that a block ACK covers: 802.11-2020, 10.25.6 */
#define LINK_WIFI_OTHERS_MOST 64u
#define LINK_WIFI_RATE_MOST   UINT64_C(10000000000)

/* All zero: the link is no Wi-Fi. */
typedef struct {
    uint64_t rate_bps;             /* of a transmission's data; 0: no Wi-Fi */
    char rate[24];                 /* as a trace, "144400000bps" */
    uint32_t others;               /* number of other stations, which always have packets */
    uint64_t others_us;            /* duration of each of their transmissions, with its preamble */
    double collision;              /* probability that a transmission is lost, besides collisions in a slot */
    uint32_t frames;               /* maximum of MPDUs in a transmission, at most LINK_WIFI_WINDOW */
    uint64_t airtime_us;           /* maximum of a transmission's data; one MPDU is always sent */
    link_loss loss;                /* of each MPDU */
    uint32_t retries;              /* of an MPDU, before it is given up */
    uint64_t suspend_us, every_us; /* nobody starts to send in the last suspend_us of each every_us; 0: always on */
    /* Constants of the standard; not configurable. */
    uint32_t slot_us, sifs_us, difs_us, preamble_us, ack_us;
    uint32_t cw_min, cw_max;
} link_wifi;

/* Parses "good", "congested", one of them with options ("congested:others=4"), options alone, which change "good", or
 * "off" into a link_wifi. Options are rate (Mbps), others, busy (ms), collision, frames, airtime (ms), p, r, good, bad,
 * retries, suspend and every (ms). */
bool link_wifi_parse(void *wifi, const char *text, char *wanted, size_t cap);

/* Returns the bits of an MPDU with an IP packet of `length` bytes. */
static inline uint64_t link_wifi_bits(uint32_t length) {
    return (uint64_t)((length + 42u + 3u) & ~3u) * 8u;
}
