/* HTTP/3 (RFC 9114) sessions of clients and servers over a libxlink connection, based on nghttp3.
 *
 * Sans-IO like the transport: the caller passes on the connection's events and the time, and calls h3_pump() whenever
 * there may be something to write. Only GET and HEAD are supported: a request's body is ignored, and a response has a
 * body of known length, which is read from a source as fast as the stream takes it.
 *
 * QPACK's dynamic table is not used in either direction (capacity 0), so no stream blocks another one. A peer can make
 * this side hold at most H3_MAX_FIELD_SECTION_BYTES per stream, plus nghttp3's buffer for a field. nghttp3 allocates it
 * as soon as the field's length is known: up to 64 KiB of address space, 128 KiB for Huffman code. At most
 * H3_MAX_HEAD_BYTES per stream and H3_MAX_HEADS_BYTES per connection are written to such buffers.
 *
 * Functions that return int return 0 or a negative xl_error. Nothing is thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

/* Payload of every DATA frame of a response except the last: the largest with a two-byte length. */
#define H3_DATA_FRAME_BYTES 16383
/* Largest field section (RFC 9114 section 4.2.2) from a peer; a larger one closes the stream. */
#define H3_MAX_FIELD_SECTION_BYTES 16384
/* Largest number of bytes that a server takes until a request's head is complete: per request, and per connection. */
#define H3_MAX_HEAD_BYTES  (2 * H3_MAX_FIELD_SECTION_BYTES)
#define H3_MAX_HEADS_BYTES (256 * 1024)

/* Error codes of RFC 9114 section 8.1 that callers name. */
#define H3_NO_ERROR          0x0100
#define H3_INTERNAL_ERROR    0x0102
#define H3_EXCESSIVE_LOAD    0x0107
#define H3_SETTINGS_ERROR    0x0109
#define H3_REQUEST_REJECTED  0x010b
#define H3_REQUEST_CANCELLED 0x010c
#define H3_MESSAGE_ERROR     0x010e

typedef struct h3_session h3_session;

typedef struct {
    const char *name; /* lower case */
    const char *value;
} h3_header;

/* A request as the server sees it. Strings live as long as the callback. */
typedef struct {
    const char *method, *path;
    const char *authority; /* "": absent */
    const char *range;     /* value of Range; NULL: absent, or with If-Range, because no response has a validator */
} h3_request;

/* The head of a final response as the client sees it. */
typedef struct {
    unsigned status;
    bool has_content_length;
    uint64_t content_length;
    bool has_content_range; /* `bytes first-last/total`; total is UINT64_MAX for `*` */
    uint64_t first, last, total;
} h3_response_head;

/* The source of a response's body. h3_respond() takes ownership, also on failure. */
typedef struct {
    uint64_t length;
    /* Writes exactly `len` bytes of the body from `offset` on to buf. False: failed; the stream is reset. */
    bool (*read)(void *user, uint64_t offset, uint8_t *buf, size_t len);
    void (*close)(void *user); /* called once, when the body is no longer needed; may be NULL */
    void *user;
} h3_body;

/* A video frame in a response's body: `size` bytes from body offset `first` on have priority `priority`. */
typedef struct {
    uint64_t first, size;
    uint8_t priority;
} h3_body_mark;

/* Every member may be NULL. h3_on_event() and h3_pump() call them. Callbacks may call h3_submit(), h3_respond() and
 * h3_cancel(), but not h3_session_free(). */
typedef struct {
    void *user;
    /* Client. Calls per stream: response, body (0 or more), then end; or abort at any time. */
    void (*response)(void *user, uint64_t stream, const h3_response_head *);
    void (*body)(void *user, uint64_t stream, const uint8_t *data, size_t len);
    void (*end)(void *user, uint64_t stream);
    /* Server. Respond with h3_respond(), in the callback or later. */
    void (*request)(void *user, uint64_t stream, const h3_request *);
    /* Server: the transport has taken the complete response; the peer has acknowledged it. */
    void (*response_written)(void *user, uint64_t stream);
    void (*response_acknowledged)(void *user, uint64_t stream);
    /* Both: the peer reset or refused the stream, its data are malformed or too large, or the body's source failed. A
     * server gets it only after request(). */
    void (*abort)(void *user, uint64_t stream, uint64_t error_code);
    /* Both: the peer sent GOAWAY, after which a client cannot submit requests. abort() with H3_REQUEST_REJECTED follows
     * for requests that the peer will not process. */
    void (*goaway)(void *user);
} h3_callbacks;

/* The connection must outlive the session. Return NULL without memory. */
h3_session *h3_session_client(xl_connection *, const h3_callbacks *);
h3_session *h3_session_server(xl_connection *, const h3_callbacks *);
void h3_session_free(h3_session *); /* closes the sources of open bodies; accepts NULL */

/* Handles an event of this session's connection. CONNECTED, or EARLY, opens the control and QPACK streams. Input that
 * violates RFC 9114 or RFC 9204 closes the connection with the error code that they require. */
void h3_on_event(h3_session *, const xl_event *, uint64_t now);
/* Passes as much data to the transport as is ready and its streams have room for. */
void h3_pump(h3_session *, uint64_t now);

/* Server: frees nghttp3's memory, about 60 kB, if no request is open. The next stream event restores it, which takes
 * 14,000 instructions. For connections that have been idle for seconds. */
void h3_rest(h3_session *);

/* Client: sends a request without body on *stream. XL_ERR_STREAM_STATE: before CONNECTED; GET and HEAD, which are safe
 * to be processed twice (RFC 8446 section 8), are possible after EARLY. XL_ERR_ARGUMENT: too long for the remembered
 * settings, or too many headers. XL_ERR_STREAM_LIMIT: the peer allows no further stream now. XL_ERR_CLOSED: after
 * GOAWAY or an error. */
int h3_submit(h3_session *, const char *method, const char *authority, const char *path, const h3_header *headers,
              size_t header_count, uint64_t *stream);
/* Server: responds to a request. `body` NULL: no body (HEAD, 304, errors). The caller includes content-length in
 * `headers`. `mark` may be NULL. */
int h3_respond(h3_session *, uint64_t stream, unsigned status, const h3_header *headers, size_t header_count,
               const h3_body *body, const h3_body_mark *mark);
/* Closes a stream in both directions, usually with H3_REQUEST_CANCELLED. No callback follows. */
void h3_cancel(h3_session *, uint64_t stream, uint64_t error_code);

/* Returns the stream range of bytes [first, first + size) of a body of `body_bytes`, after a HEADERS frame of
 * `headers_bytes` and in DATA frames of H3_DATA_FRAME_BYTES each. The range includes the frame headers in it, and the
 * one before its first byte if a frame begins there. */
xl_frame_mark h3_mark_in_stream(uint64_t headers_bytes, uint64_t body_bytes, const h3_body_mark *mark);
