/* Which flow an IP packet belongs to. */
#ifndef RAILYARD_LINK_FLOW_H
#define RAILYARD_LINK_FLOW_H

#include <stddef.h>
#include <stdint.h>

/* A hash of addresses, protocol and (of TCP, UDP, UDP-Lite, DCCP, SCTP) ports, under a perturbation. Fragments count by
 * addresses and protocol alone, so that all of a packet stay together; so do IPv6 packets with extension headers. What
 * is not IP, or too short, is one flow. */
uint64_t link_flow_hash(const uint8_t *packet, size_t length, uint64_t perturbation);

#endif
