/* 0-RTT packets that come before their ClientHello (RFC 9001 section 5.7). */
#pragma once

#include "endpoint/endpoint.h"

void xl_held_add(xl_endpoint *, const xl_datagram *in, const xl_packet_header *, const uint8_t *data, uint64_t now);
/* Passes the held packets to their new connection. h: header of its first packet, which may be decrypted by now. */
void xl_held_take(xl_endpoint *, xl_connection *, const xl_packet_header *h, const xl_datagram *in, uint64_t now);
