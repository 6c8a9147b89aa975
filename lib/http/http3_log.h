/* HTTP/3 events in a connection's qlog: draft-ietf-quic-qlog-h3-events-13, with payload lengths in `raw`.
 *
 * Frames and stream types are parsed from the sent and received bytes, independently of nghttp3. The decoded fields of
 * HEADERS come from the session. A connection without a qlog has no cost. */
#pragma once

#include <jansson.h>

#include "http/http3.h"

typedef struct h3_log h3_log;

h3_log *h3_log_new(xl_connection *, bool is_server); /* NULL: no qlog, or out of memory */
void h3_log_free(h3_log *);                          /* accepts NULL, as all functions here */

/* Takes sent or received bytes of a stream, in order. */
void h3_log_bytes(h3_log *, uint64_t stream, bool is_sent, const uint8_t *, size_t len, uint64_t now);
/* Frees the state of a stream that is closed in both directions. */
void h3_log_forget(h3_log *, uint64_t stream);

/* Returns a new field section, an array of {"name", "value"}, each cut after 1 KiB; NULL without a log. */
json_t *h3_log_fields(const h3_log *);
void h3_log_field(json_t *fields, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len);
/* Logs a complete field section. Takes the reference of `fields`. */
void h3_log_headers(h3_log *, uint64_t stream, bool is_sent, json_t *fields, uint64_t now);
