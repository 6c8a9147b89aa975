/* The events of HTTP/3 in a connection's qlog: draft-ietf-quic-qlog-h3-events-13, with payload lengths in `raw`.
 *
 * Frames and stream types are read from the bytes of the streams, those that are sent and those that arrive, beside
 * nghttp3. HEADERS have their fields decoded, so the session names those. A connection without a qlog costs nothing. */
#ifndef HTTP_HTTP3_LOG_H
#define HTTP_HTTP3_LOG_H

#include <jansson.h>

#include "http/http3.h"

typedef struct h3_log h3_log;

h3_log *h3_log_new(xl_connection *, bool is_server); /* NULL: the connection has no qlog, or out of memory */
void h3_log_free(h3_log *);                          /* NULL is fine, as with all functions here */

/* Bytes of a stream, in order: of one that this side sends on, or that it receives from. */
void h3_log_bytes(h3_log *, uint64_t stream, bool is_sent, const uint8_t *, size_t len, uint64_t now);
/* The stream is over in both directions. */
void h3_log_forget(h3_log *, uint64_t stream);

/* A field section under construction: an array of {"name", "value"}; NULL without a log. Values are cut after 1 KB. */
json_t *h3_log_fields(const h3_log *);
void h3_log_field(json_t *fields, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len);
/* The section is complete: takes the fields over. */
void h3_log_headers(h3_log *, uint64_t stream, bool is_sent, json_t *fields, uint64_t now);

#endif
