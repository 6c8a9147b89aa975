/* Uplink grants of LTE and 5G: a terminal sends only what the network has granted it (3GPP TS 36.321 and TS 38.321,
 * sections 5.4.1, 5.4.4 and 5.4.5).
 *
 *     request    a terminal without a grant asks for one at the next of its occasions, one each `sr`
 *     grant      comes `grant` after the request, for `first` bytes; what fits leaves then
 *     report     goes with these bytes and says what is left, which leaves `report` later, as all that comes then
 *     idle       nothing came for so long: there is no grant any more, and the next packet asks anew
 *
 * What is granted after the report are the link's own opportunities. Occasions lie at a place of their period that is
 * drawn by the seed. Order is kept. */
#ifndef RAILYARD_LINK_GRANTS_H
#define RAILYARD_LINK_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_GRANTS_IDLE_US     UINT64_C(10000)
#define LINK_GRANTS_FIRST_BYTES 104 /* of packets with their headers, as links count: an acknowledgement of QUIC fits */

/* sr_us 0: no grants are needed. */
typedef struct {
    uint64_t sr_us, grant_us, report_us, idle_us;
    uint32_t first_bytes;
} link_grants;

/* The state of one direction of a path; all 0 at first. Times are us since t0. */
typedef struct {
    bool has_begun;
    uint64_t came_us;  /* when the last packet came, behind those before it */
    uint64_t last_us;  /* when the last packet left */
    uint64_t first_us; /* when the first grant's bytes leave */
    uint32_t left;     /* of these bytes */
} link_grants_state;

/* "sr=MS:grant=MS[:report=MS][:first=BYTES][:idle=MS]", or "off". Without report it is as
 * grant. A parser of settings, into a link_grants. */
bool link_grants_parse(void *grants, const char *text, char *wanted, size_t cap);
/* sr_us > 0. How long a packet that comes at t_us waits; one that comes before an earlier one waits for that.
 * `phase_us`: an occasion, below sr_us. */
uint64_t link_grants_wait(const link_grants *grants, link_grants_state *state, uint64_t phase_us, uint64_t t_us,
                          uint32_t bytes);

#endif
