/* Search for the largest datagrams that a path carries: DPLPMTUD, RFC 8899 and RFC 9000 section 14.3. A probe is a
 * packet of PING and PADDING whose loss is no sign of congestion. Sizes are UDP payload bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t base;    /* size that every path carries */
    uint64_t most;    /* the largest size that both ends allow */
    uint64_t size;    /* proven size, which packets may have now */
    uint64_t failed;  /* smallest size that was lost; most + 1: none */
    uint64_t probe;   /* size of the probe in flight; 0: none */
    unsigned tries;   /* probes of the present size that were lost */
    uint64_t next_at; /* no probe before this time; after a complete search, the time of the next one */

    /* Black holes: since the last large packet was acknowledged, a packet of at most `base` bytes was acknowledged, and
     * large packets that were sent after it were lost. */
    bool small_arrived;
    uint64_t small_sent_at;
    unsigned large_lost;
} xl_mtu;

void xl_mtu_init(xl_mtu *, uint64_t base, uint64_t most);
/* Size of the probe to send now; 0: none. */
uint64_t xl_mtu_next_probe(const xl_mtu *, uint64_t now);
void xl_mtu_probe_sent(xl_mtu *, uint64_t bytes);
void xl_mtu_probe_acked(xl_mtu *, uint64_t bytes, uint64_t now);
/* too_large: the kernel refused the probe, so there is no second try. */
void xl_mtu_probe_lost(xl_mtu *, uint64_t bytes, bool too_large, uint64_t now);
/* For packets other than probes. True: the path no longer carries large packets (a black hole). size is `base` again,
 * and the search restarts. */
void xl_mtu_packet_acked(xl_mtu *, uint64_t bytes, uint64_t sent_at);
bool xl_mtu_packet_lost(xl_mtu *, uint64_t bytes, uint64_t sent_at);
/* The kernel refused a packet of this size. Returns whether `size` has changed. */
bool xl_mtu_too_large(xl_mtu *, uint64_t bytes, uint64_t now);
