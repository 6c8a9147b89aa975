/* Uplink grants of LTE and 5G: a terminal sends only what the network has granted it (3GPP TS 36.321 and TS 38.321,
 * sections 5.4.1, 5.4.4 and 5.4.5).
 *
 *     request    a terminal without a grant asks for one at its next occasion; occasions are `sr` apart
 *     grant      arrives `grant` after the request, for `first` bytes; packets that fit leave then
 *     report     is sent with these bytes; the other packets leave `report` later, and all later ones at once
 *     idle       the grant ends this long after the last packet left; then the next packet requests a new one
 *
 * After the report the grants are the link's own opportunities. The phase of the occasions is drawn from the seed.
 * Packets stay in order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_GRANTS_IDLE_US     UINT64_C(10000)
#define LINK_GRANTS_FIRST_BYTES 104 /* of packets as links count them: a QUIC acknowledgement fits */

/* sr_us 0: no grants are needed. */
typedef struct {
    uint64_t sr_us, grant_us, report_us, idle_us;
    uint32_t first_bytes;
} link_grants;

/* The state of one direction of a path; all 0 at first. Times are us since t0. */
typedef struct {
    bool has_begun;
    uint64_t came_us;  /* latest arrival so far */
    uint64_t last_us;  /* when the last packet left */
    uint64_t first_us; /* when the bytes of the first grant leave */
    uint32_t left;     /* bytes of the first grant that are not used */
} link_grants_state;

/* Parses "sr=MS:grant=MS[:report=MS][:first=BYTES][:idle=MS]" or "off" into a link_grants. Default of report: grant. */
bool link_grants_parse(void *grants, const char *text, char *wanted, size_t cap);
/* Returns how long a packet that comes at t_us waits, in us. If t_us is before an earlier packet's, it also waits until
 * that one came. phase_us: time of the first occasion, below sr_us. sr_us must not be 0. */
uint64_t link_grants_wait(const link_grants *grants, link_grants_state *state, uint64_t phase_us, uint64_t t_us,
                          uint32_t bytes);
