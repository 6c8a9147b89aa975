/* Streams, frames and settings of reserved types, 0x1f * N + 0x21, which a peer must ignore (RFC 9114 sections 6.2.3,
 * 7.2.4.1 and 7.2.8). Each function writes one of them, derived from the connection's random number, to a buffer of
 * H3_GREASE_BYTES, and returns its length. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define H3_GREASE_BYTES 96

/* A complete unidirectional stream: its type and a few bytes. */
size_t h3_grease_stream(uint64_t random, uint8_t *out);
size_t h3_grease_frame(uint64_t random, uint8_t *out);
/* Copies a control stream's type and SETTINGS with one more setting, and appends a frame. 0: `begin` has other content,
 * or is too long. */
size_t h3_grease_control(uint64_t random, const uint8_t *begin, size_t len, uint8_t *out);
