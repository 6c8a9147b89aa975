/* HTTP/0.9 over QUIC for interoperability tests (ALPN "hq-interop"). A request is the line `GET /path` and FIN on a
 * bidirectional stream of the client. The response is the body and FIN. There is no status: if there is no such file,
 * the server resets the stream.
 *
 * Sans-IO, used like http3.h: pass the connection's events to hq_on_event(); hq_pump() writes. Functions that return
 * int return 0 or a negative xl_error. Nothing is thread safe. */
#pragma once

#include "http/http3.h"

#define HQ_ALPN           "hq-interop"
#define HQ_MAX_LINE_BYTES 4096 /* of a request; a longer one is refused */
#define HQ_NOT_FOUND      404  /* private application error code of a reset stream */
#define HQ_BAD_REQUEST    400

typedef struct hq_session hq_session;

/* hq_on_event() and hq_pump() call them. */
typedef struct {
    void *user;
    void (*request)(void *user, uint64_t stream, const char *path); /* server: then hq_respond() or hq_refuse() */
    void (*body)(void *user, uint64_t stream, const uint8_t *data, size_t len); /* client */
    void (*end)(void *user, uint64_t stream);                                   /* client: the body is complete */
    void (*abort)(void *user, uint64_t stream,
                  uint64_t error_code);                /* both: the peer reset or stopped it, or sending failed */
    void (*acknowledged)(void *user, uint64_t stream); /* server: the complete response was */
} hq_callbacks;

/* The connection must outlive the session. Returns NULL without memory. */
hq_session *hq_session_new(xl_connection *, bool is_server, const hq_callbacks *);
void hq_session_free(hq_session *); /* closes the sources of open bodies; accepts NULL */

void hq_on_event(hq_session *, const xl_event *);
void hq_pump(hq_session *);

/* Client: sends a request on *stream. XL_ERR_STREAM_LIMIT: the peer allows no further stream now. XL_ERR_ARGUMENT: the
 * path is too long. */
int hq_submit(hq_session *, const char *path, uint64_t *stream);
/* Server: sends a response. Takes ownership of the body, also on failure; NULL: empty. */
int hq_respond(hq_session *, uint64_t stream, const h3_body *body);
void hq_refuse(hq_session *, uint64_t stream, uint64_t error_code);
