/* For tests of links: packets that have a number, and a flow by their port. */
#ifndef RAILYARD_LINK_NUMBERED_H
#define RAILYARD_LINK_NUMBERED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emulator/link/packet.h"

/* Where the number is: behind the headers of IPv4, in the flow label and length of IPv6. Neither identifies a flow. */
static inline size_t numbered_at(const link_packet *packet) {
    return packet->data[0] >> 4 == 6 ? 2 : 28;
}

/* UDP over this version of IP, of `length` bytes. NULL: out of memory. */
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

#endif
