/* For tests of links: packets with a number and a flow (IPv4: by source port, IPv6: by source address). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emulator/link/packet.h"

/* Offset of the number: after the headers of IPv4, in flow label and length of IPv6. Neither identifies a flow. */
static inline size_t numbered_at(const link_packet *packet) {
    return packet->data[0] >> 4 == 6 ? 2 : 28;
}

/* Returns a packet of this version of IP (UDP for IPv4) of `length` bytes, or NULL without memory. */
static inline link_packet *numbered_packet(link_pool *pool, uint8_t version, uint8_t flow, uint32_t number,
                                           uint32_t length) {
    link_packet *packet = link_pool_get(pool);
    if (!packet)
        return NULL;
    memset(packet->data, 0, 40);
    packet->length = length;
    packet->data[0] = version == 6 ? 0x60 : 0x45;
    packet->data[9] = 17;
    packet->data[21] = flow;
    memcpy(packet->data + numbered_at(packet), &number, sizeof number);
    return packet;
}

static inline uint32_t numbered_number(const link_packet *packet) {
    uint32_t number;
    memcpy(&number, packet->data + numbered_at(packet), sizeof number);
    return number;
}
