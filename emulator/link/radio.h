/* A phone's radio sleeps while nothing is sent, and the first packet after a pause waits for it to wake up (RRC states
 * and connected-mode DRX of LTE: 3GPP TS 36.331 and TS 36.321 section 5.7; measured by Huang et al., MobiSys 2012).
 *
 * A pause is the time between two packets that enter a direction of a path; each direction has its own.
 *     pause >= tail:     the radio is idle (RRC_IDLE), and the packet waits `promotion`
 *     pause >= inactive: it wakes up once per cycle, and the packet waits for the next multiple of `cycle` in the pause
 * Before the first packet the radio is idle. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_RADIO_NO_PACKET UINT64_MAX /* pause before the first packet */

/* Presets: name, promotion and tail in ms. For the uplink of a phone that sends first, without the wait for paging. LTE
 * of 2012: Huang et al., MobiSys 2012. The others: estimates from RRC-Probe, May 2021 (Narayanan et al., SIGCOMM 2021),
 * T-Mobile and Verizon in the United States; docs/reference/links.md has the formula and the intervals. */
#define LINK_RADIO_PRESETS(X)                                                                                          \
    X("lte-2012", 260, 11576)                                                                                          \
    X("lte-tmobile-2021", 215, 5000)                                                                                   \
    X("lte-verizon-2021", 239, 10000)                                                                                  \
    X("nsa-tmobile-2021", 288, 10000)                                                                                  \
    X("nsa-verizon-2021", 261, 10000)                                                                                  \
    X("mmwave-verizon-2021", 219, 10000)                                                                               \
    X("sa-tmobile-2021", 368, 10000)

/* All 0: always awake. */
typedef struct {
    uint64_t promotion_us, tail_us;
    uint64_t inactive_us, cycle_us;
} link_radio;

/* Parses "promotion=MS:tail=MS", "inactive=MS:cycle=MS", all four, a preset, or "off" (always awake) into a
 * link_radio. */
bool link_radio_parse(void *radio, const char *text, char *wanted, size_t cap);
/* Returns how long a packet waits for the radio after this pause, in us. */
uint64_t link_radio_wait(const link_radio *radio, uint64_t pause_us);

/* A radio that both directions of a path share, with paging (3GPP TS 36.304 and TS 38.304, section 7.1): the network
 * reaches a sleeping phone only at paging occasions, which are paging_us apart; then the phone wakes up. A phone that
 * sends wakes up at once. All 0: none. */
typedef struct {
    uint64_t paging_us, promotion_us, tail_us;
    uint64_t phase_us; /* first paging occasion */
    uint64_t last_us;  /* when the last packet of either direction could be sent; LINK_RADIO_NO_PACKET: none */
    uint64_t awake_us; /* when it became or becomes awake */
} link_rrc;

/* Returns a shared radio with the uplink's promotion and tail; none without a tail or paging_us. The phase is drawn
 * from the seed. */
link_rrc link_rrc_make(const link_radio *uplink, uint64_t paging_us, uint64_t seed);
/* Returns how long a packet from the phone or the network that comes now waits, in us. */
uint64_t link_rrc_wait(link_rrc *rrc, bool from_network, uint64_t now);
