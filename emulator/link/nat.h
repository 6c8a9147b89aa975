/* A network address and port translator on a path, between its link and the server (RFC 4787). It has the client's
 * address as its outer address and translates ports of UDP and TCP over IPv4; whatever else passes unchanged.
 *
 * Uplink packets are translated when they leave the link, downlink packets before they enter it. Sans-IO: times are us
 * since t0. Two directions of one path share it, so calls may come a little out of order; then the latest time so far
 * counts. */
#ifndef RAILYARD_LINK_NAT_H
#define RAILYARD_LINK_NAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"

/* What must be the same so that a port is kept (mapping), and from whom packets are let in (filtering): RFC 4787
 * sections 4.1 and 5. */
typedef enum { LINK_NAT_INDEPENDENT, LINK_NAT_ADDRESS, LINK_NAT_ADDRESS_PORT } link_nat_kind;

typedef struct {
    link_nat_kind mapping, filtering;
    uint64_t timeout_us; /* without a packet from inside; 0: there is no NAT */
} link_nat_rules;

/* "mapping=KIND:filtering=KIND:timeout=MS" of which at least one is needed, or "off". A parser
 * of settings, into a link_nat_rules. */
bool link_nat_parse(void *rules, const char *text, char *wanted, size_t cap);

typedef struct link_nat link_nat;

/* NULL: no memory. The seed is that of the ports. */
link_nat *link_nat_new(const link_nat_rules *rules, uint64_t seed);
/* NULL is allowed. */
void link_nat_free(link_nat *nat);
/* A packet from inside. */
void link_nat_out(link_nat *nat, link_packet *packet, uint64_t now);
/* A packet from outside. False: nobody inside has asked for it, and it is to be dropped. */
bool link_nat_in(link_nat *nat, link_packet *packet, uint64_t now);
/* All mappings are forgotten. */
void link_nat_rebind(link_nat *nat);
/* How many ports were given out. */
uint64_t link_nat_mappings(const link_nat *nat);

#endif
