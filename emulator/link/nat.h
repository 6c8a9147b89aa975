/* A network address and port translator on a path, between its link and the server (RFC 4787). Its outer address is the
 * client's address. It translates ports of UDP and TCP over IPv4, also in ICMP errors; other packets pass unchanged.
 *
 * Uplink packets are translated when they leave the link, downlink packets before they enter it. Sans-IO: times are us
 * since t0. Both directions of a path share it, so times of calls may decrease slightly; then the latest time so far
 * counts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"

/* Which part of the remote address must match for a packet to use the same port (mapping) or to be let in (filtering):
 * RFC 4787 sections 4.1 and 5. */
typedef enum { LINK_NAT_INDEPENDENT, LINK_NAT_ADDRESS, LINK_NAT_ADDRESS_PORT } link_nat_kind;

typedef struct {
    link_nat_kind mapping, filtering;
    uint64_t timeout_us; /* end of a session without packets from inside; 0: there is no NAT */
} link_nat_rules;

/* Parses "mapping=KIND:filtering=KIND:timeout=MS", at least one of them, or "off" into a link_nat_rules. */
bool link_nat_parse(void *rules, const char *text, char *wanted, size_t cap);

typedef struct link_nat link_nat;

/* Returns NULL without memory. The seed determines the ports. */
link_nat *link_nat_new(const link_nat_rules *rules, uint64_t seed);
/* NULL is allowed. */
void link_nat_free(link_nat *nat);
/* Translates a packet from inside. */
void link_nat_out(link_nat *nat, link_packet *packet, uint64_t now);
/* Translates a packet from outside. False: no session lets it in; drop it. */
bool link_nat_in(link_nat *nat, link_packet *packet, uint64_t now);
/* Forgets all mappings. */
void link_nat_rebind(link_nat *nat);
/* Returns the number of ports assigned so far. */
uint64_t link_nat_mappings(const link_nat *nat);
