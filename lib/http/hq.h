/* HTTP/0.9 over QUIC, as interoperability tests speak it (ALPN "hq-interop"): a request is the line `GET /path` on a
 * bidirectional stream of the client's, with the end of the stream behind it; the answer is the body alone, and the end
 * of the stream. There is no status: a server that has no such file resets the stream.
 *
 * Sans-IO, with the same use as http3.h: the connection's events go to hq_on_event(), and hq_pump() writes. Functions
 * that return int give 0 or a negative xl_error. Nothing is thread safe. */
#ifndef HTTP_HQ_H
#define HTTP_HQ_H

#include "http/http3.h"

#define HQ_ALPN           "hq-interop"
#define HQ_MAX_LINE_BYTES 4096 /* of a request; a longer one is reset */
#define HQ_NOT_FOUND      404  /* application error code of a reset stream: private; or H3_REQUEST_REJECTED */
#define HQ_BAD_REQUEST    400

typedef struct hq_session hq_session;

/* Callbacks come from within hq_on_event() and hq_pump(). */
typedef struct {
    void *user;
    void (*request)(void *user, uint64_t stream, const char *path); /* server: answer it by hq_respond(), hq_refuse() */
    void (*body)(void *user, uint64_t stream, const uint8_t *data, size_t len); /* client */
    void (*end)(void *user, uint64_t stream);                                   /* client: the body is complete */
    void (*abort)(void *user, uint64_t stream, uint64_t error_code);            /* both: the peer gave the stream up */
    void (*acknowledged)(void *user, uint64_t stream);                          /* server: all of the answer was */
} hq_callbacks;

/* The connection must outlive the session. NULL: out of memory. */
hq_session *hq_session_new(xl_connection *, bool is_server, const hq_callbacks *);
void hq_session_free(hq_session *); /* closes the sources of bodies that are still open; NULL is fine */

void hq_on_event(hq_session *, const xl_event *, uint64_t now);
void hq_pump(hq_session *, uint64_t now);

/* Client: *stream is the request's ID. XL_ERR_STREAM_LIMIT while the peer allows no further stream, XL_ERR_ARGUMENT
 * where the path is too long. */
int hq_submit(hq_session *, const char *path, uint64_t *stream);
/* Server. The body is the session's from then on, also on failure; NULL: an empty answer. */
int hq_respond(hq_session *, uint64_t stream, const h3_body *body);
void hq_refuse(hq_session *, uint64_t stream, uint64_t error_code);

#endif
