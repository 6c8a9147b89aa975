/* The search for the size of datagrams that a path carries: DPLPMTUD, RFC 8899 and RFC 9000 section 14.3. A probe is a
 * packet of PING and PADDING whose loss is no sign of congestion. Sizes are UDP payload bytes. */
#ifndef XL_PATH_MTU_H
#define XL_PATH_MTU_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t base;    /* what every path carries */
    uint64_t most;    /* the largest size that both ends allow */
    uint64_t size;    /* proven: what packets may have now */
    uint64_t failed;  /* the smallest size that did not get through; most + 1 = none */
    uint64_t probe;   /* size of the probe in flight; 0 = none */
    unsigned tries;   /* probes of the present size that were lost */
    uint64_t next_at; /* no probe before; the search begins anew then */

    /* Black holes: a packet of base bytes at most, sent after the last large one that arrived, was acknowledged, and
     * large ones that were sent later were lost. */
    bool small_arrived;
    uint64_t small_sent_at;
    unsigned large_lost;
} xl_mtu;

void xl_mtu_init(xl_mtu *, uint64_t base, uint64_t most);
/* Size of the probe to send now; 0 = none. */
uint64_t xl_mtu_next_probe(const xl_mtu *, uint64_t now);
void xl_mtu_probe_sent(xl_mtu *, uint64_t bytes);
void xl_mtu_probe_acked(xl_mtu *, uint64_t bytes, uint64_t now);
/* too_large: the kernel refused it; there is no need to try again. */
void xl_mtu_probe_lost(xl_mtu *, uint64_t bytes, bool too_large, uint64_t now);
/* Other packets. True: the path has become a black hole for large ones; size is base again, and the search restarts. */
void xl_mtu_packet_acked(xl_mtu *, uint64_t bytes, uint64_t sent_at);
bool xl_mtu_packet_lost(xl_mtu *, uint64_t bytes, uint64_t sent_at);
/* The kernel refused a packet of so many bytes. True: size has changed. */
bool xl_mtu_too_large(xl_mtu *, uint64_t bytes, uint64_t now);

#endif
