#include "emulator/saturatr/wire.h"

#include <string.h>

#define MAGIC 0x53415452u /* "SATR" */

static uint8_t *put64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (56 - 8 * i));
    return at + 8;
}

static uint64_t get64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}

size_t sat_wire_write(const sat_packet *packet, uint8_t *out) {
    const uint64_t first = (uint64_t)MAGIC << 32 | (uint64_t)packet->type << 24 | (uint64_t)packet->channel << 16 |
                           (uint64_t)packet->path << 8 | packet->flags;
    uint8_t *at = put64(out, first);
    at = put64(at, packet->tag);
    at = put64(at, packet->seq);
    at = put64(at, packet->sent_us);
    if (packet->type == SAT_DATA)
        return SAT_HEADER_BYTES;
    memset(at, 0, SAT_CONTROL_BYTES - SAT_HEADER_BYTES);
    if (packet->type != SAT_ACK) {
        memcpy(at, packet->cookie, SAT_COOKIE_BYTES);
        at += SAT_COOKIE_BYTES;
    }
    if (packet->type != SAT_HELLO) {
        at = put64(at, packet->echo_us);
        at = put64(at, packet->received_us);
    }
    if (packet->type == SAT_ACK)
        put64(at, packet->received_packets);
    return SAT_CONTROL_BYTES;
}

bool sat_wire_read(sat_packet *packet, const uint8_t *data, size_t length, size_t datagram_bytes) {
    memset(packet, 0, sizeof(*packet));
    if (length < SAT_HEADER_BYTES || get64(data) >> 32 != MAGIC)
        return false;
    packet->type = data[4];
    packet->channel = data[5];
    packet->path = data[6];
    packet->flags = data[7];
    packet->tag = get64(data + 8);
    packet->seq = get64(data + 16);
    packet->sent_us = get64(data + 24);
    if (packet->channel >= SAT_MAX_CHANNELS || packet->path >= SAT_MAX_PATHS)
        return false;
    if (packet->type == SAT_DATA)
        return true;
    if (length < SAT_CONTROL_BYTES || datagram_bytes != SAT_CONTROL_BYTES)
        return false;
    const uint8_t *at = data + SAT_HEADER_BYTES;
    if (packet->type == SAT_HELLO || packet->type == SAT_WELCOME) {
        memcpy(packet->cookie, at, SAT_COOKIE_BYTES);
        at += SAT_COOKIE_BYTES;
    }
    if (packet->type == SAT_WELCOME || packet->type == SAT_ACK) {
        packet->echo_us = get64(at);
        packet->received_us = get64(at + 8);
    }
    if (packet->type == SAT_ACK)
        packet->received_packets = get64(at + 16);
    return packet->type >= SAT_HELLO && packet->type <= SAT_ACK;
}
