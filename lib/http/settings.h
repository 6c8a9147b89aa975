/* The server's SETTINGS, as a client comes to know them: nghttp3 keeps them to itself, and a client that sends requests
 * as 0-RTT data has to keep to those of the connection before (RFC 9114 section 7.2.4.2). */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H3_SETTINGS_STREAMS 4   /* of the server's first unidirectional streams one is the control stream */
#define H3_SETTINGS_BYTES   128 /* longer ones are not remembered */

/* What is found, or the default. */
typedef struct {
    uint64_t max_field_section_bytes; /* UINT64_MAX: no limit */
    uint64_t table_bytes, blocked_streams;
} h3_peer_settings;

typedef struct {
    uint8_t bytes[H3_SETTINGS_STREAMS][H3_SETTINGS_BYTES];
    size_t len[H3_SETTINGS_STREAMS];
    bool is_over;         /* found, or given up */
    const uint8_t *found; /* the payload of SETTINGS, into bytes */
    size_t found_len;
} h3_settings_reader;

/* Bytes of a unidirectional stream of the server, in order. True: with them SETTINGS is complete. */
bool h3_settings_feed(h3_settings_reader *, uint64_t stream, const uint8_t *data, size_t len);
/* The payload of SETTINGS. False: malformed. */
bool h3_settings_parse(const uint8_t *payload, size_t len, h3_peer_settings *);
/* Whether less is allowed than before. */
bool h3_settings_are_reduced(const h3_peer_settings *now, const h3_peer_settings *before);

#endif
