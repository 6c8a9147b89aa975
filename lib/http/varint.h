/* Variable-length integers (RFC 9000 section 16). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads an integer from the bytes [*at, end) and advances *at. False: incomplete; *at is unchanged. */
static inline bool http_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    const size_t bytes = *at < end ? (size_t)1 << (**at >> 6) : 1;
    if ((size_t)(end - *at) < bytes)
        return false;
    *value = **at & 0x3f;
    for (size_t i = 1; i < bytes; i++)
        *value = *value << 8 | (*at)[i];
    *at += bytes;
    return true;
}
