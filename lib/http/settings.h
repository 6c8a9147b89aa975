/* Reads the server's SETTINGS, because nghttp3 does not expose them. Requests in 0-RTT data must comply with the
 * SETTINGS of the previous connection (RFC 9114 section 7.2.4.2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H3_SETTINGS_STREAMS 4   /* first unidirectional streams of the server, of which one is the control stream */
#define H3_SETTINGS_BYTES   128 /* longer ones are not remembered */

/* Values of SETTINGS, or their defaults. */
typedef struct {
    uint64_t max_field_section_bytes; /* UINT64_MAX: no limit */
    uint64_t table_bytes, blocked_streams;
} h3_peer_settings;

typedef struct {
    uint8_t bytes[H3_SETTINGS_STREAMS][H3_SETTINGS_BYTES];
    size_t len[H3_SETTINGS_STREAMS];
    bool is_over;         /* SETTINGS are complete */
    const uint8_t *found; /* payload of SETTINGS, points into bytes */
    size_t found_len;
} h3_settings_reader;

/* Takes bytes of a stream, in order. True: they complete SETTINGS. */
bool h3_settings_feed(h3_settings_reader *, uint64_t stream, const uint8_t *data, size_t len);
/* Parses the payload of SETTINGS. False: malformed. */
bool h3_settings_parse(const uint8_t *payload, size_t len, h3_peer_settings *);
/* Whether a limit is lower than before. */
bool h3_settings_are_reduced(const h3_peer_settings *now, const h3_peer_settings *before);
