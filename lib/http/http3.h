/* HTTP/3 (RFC 9114) sessions over a libxlink connection: the client's and the server's side, by nghttp3.
 *
 * Sans-IO like the transport below it: the caller hands over the connection's events and the time, and calls h3_pump()
 * whenever something may have to be written. Only GET and HEAD semantics are needed here: a request has no body that
 * anybody keeps, a response has a body of known length that is pulled from a source no faster than the stream takes it.
 *
 * QPACK's dynamic table is not used in either direction (table capacity 0), so no stream ever blocks on another one and
 * a peer can make this side hold no more than H3_MAX_FIELD_SECTION_BYTES a stream, and what nghttp3 sets aside for a
 * field as soon as its length is known: address space of 64 KiB for the longest value that it takes, 128 KiB in Huffman
 * code, of which H3_MAX_HEAD_BYTES are ever written, and H3_MAX_HEADS_BYTES over all of a connection's.
 *
 * Functions that return int give 0 or a negative xl_error. Nothing is thread safe. */
#ifndef HTTP_HTTP3_H
#define HTTP_HTTP3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

/* Payload of every DATA frame of a response but the last: the largest that a two-byte length can say. */
#define H3_DATA_FRAME_BYTES 16383
/* Largest field section (RFC 9114 section 4.2.2) taken from a peer; a larger one costs the stream. */
#define H3_MAX_FIELD_SECTION_BYTES 16384
/* What a server takes of a request until its head is complete, and of all such requests of a connection. */
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
    const char *authority; /* "" when absent */
    const char *range;     /* value of Range; NULL: absent, or with an If-Range, since no response has a validator */
} h3_request;

/* The head of a final response as the client sees it. */
typedef struct {
    unsigned status;
    bool has_content_length;
    uint64_t content_length;
    bool has_content_range; /* `bytes first-last/total`; total is UINT64_MAX for `*` */
    uint64_t first, last, total;
} h3_response_head;

/* Where a response's body comes from. Owned by the session from h3_respond() on, also when that fails. */
typedef struct {
    uint64_t length;
    /* Writes exactly `len` bytes of the body from `offset` on into buf; false = it cannot, the stream is reset. */
    bool (*read)(void *user, uint64_t offset, uint8_t *buf, size_t len);
    void (*close)(void *user); /* called once, when the body is not needed any more; may be NULL */
    void *user;
} h3_body;

/* A video frame in a response's body: `size` bytes from body offset `first` on get stream priority `priority`. */
typedef struct {
    uint64_t first, size;
    uint8_t priority;
} h3_body_mark;

/* Every member may be NULL. Callbacks come from within h3_on_event() and h3_pump(); they may call h3_submit(),
 * h3_respond() and h3_cancel(), not h3_session_free(). */
typedef struct {
    void *user;
    /* Client. On each stream: response, body (0 or more), then one of end and abort. */
    void (*response)(void *user, uint64_t stream, const h3_response_head *);
    void (*body)(void *user, uint64_t stream, const uint8_t *data, size_t len);
    void (*end)(void *user, uint64_t stream);
    /* Server. Each request is answered by h3_respond(), then or later. */
    void (*request)(void *user, uint64_t stream, const h3_request *);
    /* Server: the last byte of the response was handed to the transport; the peer acknowledged all of it. */
    void (*response_written)(void *user, uint64_t stream);
    void (*response_acknowledged)(void *user, uint64_t stream);
    /* Both: the peer reset or refused the stream, what came on it is malformed or too large, or the body's source
     * failed. */
    void (*abort)(void *user, uint64_t stream, uint64_t error_code);
    /* Both: the peer sent GOAWAY; a client opens no further requests. Those that the peer will not process are aborted
     * afterwards, with H3_REQUEST_REJECTED. */
    void (*goaway)(void *user);
} h3_callbacks;

/* The connection must outlive the session. NULL: out of memory. */
h3_session *h3_session_client(xl_connection *, const h3_callbacks *);
h3_session *h3_session_server(xl_connection *, const h3_callbacks *);
void h3_session_free(h3_session *); /* closes the sources of bodies that are still open; NULL is fine */

/* Hands over one event of this session's connection: CONNECTED, or EARLY, opens the control and QPACK
 * streams. Input that breaks
 * RFC 9114 or RFC 9204 closes the connection with the error code that they ask for. */
void h3_on_event(h3_session *, const xl_event *, uint64_t now);
/* Moves what is ready, and what the streams have room for, to the transport. */
void h3_pump(h3_session *, uint64_t now);

/* Server: frees what nghttp3 holds, some 60 kB, if no request is under way. The next event of a stream makes it anew,
 * by 14,000 instructions. For connections that have been silent for seconds. */
void h3_rest(h3_session *);

/* Client: sends a request without body; *stream is its ID. XL_ERR_STREAM_STATE before CONNECTED, and before EARLY for
 * GET and HEAD, which may be carried out twice (RFC 8446 section 8); XL_ERR_ARGUMENT if it is too long for the settings
 * that are remembered; XL_ERR_STREAM_LIMIT while the peer allows no further stream, XL_ERR_CLOSED after GOAWAY or an
 * error. */
int h3_submit(h3_session *, const char *method, const char *authority, const char *path, const h3_header *headers,
              size_t header_count, uint64_t *stream);
/* Server: answers a request. `body` NULL = no body (HEAD, 304, errors); content-length is the caller's business, among
 * `headers`. `mark` may be NULL. */
int h3_respond(h3_session *, uint64_t stream, unsigned status, const h3_header *headers, size_t header_count,
               const h3_body *body, const h3_body_mark *mark);
/* Gives up a stream in both directions, by default with H3_REQUEST_CANCELLED. No callback follows. */
void h3_cancel(h3_session *, uint64_t stream, uint64_t error_code);

/* Where bytes [first, first + size) of a body of `body_bytes` lie in the stream, when the HEADERS frame before it takes
 * `headers_bytes` and DATA frames carry H3_DATA_FRAME_BYTES each: from the DATA frame header in front of the first
 * byte, where the range begins with one, through the last byte, frame headers between them included. */
xl_frame_mark h3_mark_in_stream(uint64_t headers_bytes, uint64_t body_bytes, const h3_body_mark *mark);

#endif
