/* The flow of an IP packet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns a hash of addresses, protocol and ports (TCP, UDP, UDP-Lite, DCCP, SCTP) with a perturbation. Ports of
 * fragments and of IPv6 packets with extension headers are left out, so that all fragments of a packet have one flow.
 * Packets that are not IP or too short are one flow. */
uint64_t link_flow_hash(const uint8_t *packet, size_t length, uint64_t perturbation);
