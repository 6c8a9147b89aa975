#include "http/grease.h"

#include <stdbool.h>
#include <string.h>

#define CONTROL_STREAM 0x00
#define SETTINGS_FRAME 0x04
#define SETTING_MOST   9 /* upper limit of bytes per setting: an identifier below 2^30, a value of one byte */
#define HEADER_BYTES   3 /* stream type, frame type, length below 64 */

static size_t put_varint(uint8_t *out, uint64_t value) {
    size_t log = value < 64 ? 0 : value < 16384 ? 1 : 2, bytes = (size_t)1 << log;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    out[0] |= (uint8_t)(log << 6);
    return bytes;
}

static uint64_t reserved(uint64_t random) {
    return 0x1f * (random % (UINT64_C(1) << 24)) + 0x21;
}

/* Writes at most seven meaningless bytes. */
static size_t put_noise(uint8_t *out, uint64_t random) {
    size_t len = random % 8;
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(random >> 8 * (i + 1));
    return len;
}

size_t h3_grease_stream(uint64_t random, uint8_t *out) {
    size_t at = put_varint(out, reserved(random));
    return at + put_noise(out + at, random >> 24);
}

size_t h3_grease_frame(uint64_t random, uint8_t *out) {
    uint8_t noise[8];
    size_t len = put_noise(noise, random >> 24), at = put_varint(out, reserved(random >> 8));
    at += put_varint(out + at, len);
    memcpy(out + at, noise, len);
    return at + len;
}

size_t h3_grease_control(uint64_t random, const uint8_t *begin, size_t len, uint8_t *out) {
    const bool is_whole = len >= HEADER_BYTES && begin[0] == CONTROL_STREAM && begin[1] == SETTINGS_FRAME &&
                          begin[2] == len - HEADER_BYTES && len - HEADER_BYTES + SETTING_MOST < 64;
    if (!is_whole)
        return 0;
    memcpy(out, begin, len);
    size_t at = len;
    at += put_varint(out + at, reserved(random >> 16));
    out[at++] = (uint8_t)(random % 64);
    out[2] = (uint8_t)(at - HEADER_BYTES);
    return at + h3_grease_frame(random >> 4, out + at);
}
