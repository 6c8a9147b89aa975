#include "emulator/link/flow.h"

#include <stdbool.h>
#include <string.h>

#include "emulator/link/rng.h"

static bool has_ports(uint8_t protocol) {
    return protocol == 6 || protocol == 17 || protocol == 136 || protocol == 33 || protocol == 132;
}

static uint64_t absorb(uint64_t hash, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = link_mix64(hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

/* The addresses are `addresses` bytes at packet + at, the ports at packet + header; header 0: no ports. */
static uint64_t hash_tuple(const uint8_t *packet, size_t length, size_t at, size_t addresses, size_t header,
                           uint8_t protocol, uint64_t hash) {
    hash = absorb(hash ^ protocol, packet + at, addresses);
    return has_ports(protocol) && header > 0 && length >= header + 4 ? absorb(hash, packet + header, 4) : hash;
}

uint64_t link_flow_hash(const uint8_t *packet, size_t length, uint64_t perturbation) {
    if (length >= 20 && packet[0] >> 4 == 4) {
        bool is_fragment = (packet[6] & 0x3f) != 0 || packet[7] != 0; /* more fragments, or an offset */
        size_t header = (size_t)(packet[0] & 15) * 4;
        return hash_tuple(packet, length, 12, 8, is_fragment ? 0 : header, packet[9], perturbation);
    }
    if (length >= 40 && packet[0] >> 4 == 6)
        return hash_tuple(packet, length, 8, 32, 40, packet[6], perturbation);
    return link_mix64(perturbation);
}
