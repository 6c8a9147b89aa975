/* Strict parser of HTTP/1.1 message heads (RFC 9112) for xlink-server and xlink-player, sans-IO.
 *
 * A body's length comes from Content-Length only; a message with a transfer coding is refused. Nothing here allocates.
 * A head has at most HTTP1_MAX_HEAD_BYTES. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP1_MAX_HEAD_BYTES   8192
#define HTTP1_MAX_TARGET_BYTES 1024
#define HTTP1_MAX_RANGE_BYTES  128
#define HTTP1_MAX_FIELDS       64

typedef struct {
    char method[16];
    char target[HTTP1_MAX_TARGET_BYTES +
                1]; /* without "http://host" of the absolute form, which clients send to proxies */
    char range[HTTP1_MAX_RANGE_BYTES + 1]; /* value of Range; "": none, too long, or with an If-Range */
    bool keep_alive;                       /* the connection stays open for further requests */
} http1_request;

typedef struct {
    int status;
    bool has_content_length;
    uint64_t content_length;
    bool has_content_range; /* "bytes first-last/total"; total is UINT64_MAX for "*" */
    uint64_t range_first, range_last, range_total;
    bool keep_alive;
} http1_response;

/* Parse the head at the start of buf. Return
 *   > 0  its length: the body, or the next message, begins there
 *   0    the head is incomplete (len < HTTP1_MAX_HEAD_BYTES)
 *   < 0  malformed or unsupported. For a request, the negated status to respond with before closing: -400 bad syntax,
 *        -413 a body, -414 long target, -431 long head, -501 a transfer coding, -505 not HTTP/1.x.
 * *scanned: bytes that were searched for the end in earlier calls with the growing buffer; 0 in the first call. */
ssize_t http1_parse_request(const char *buf, size_t len, size_t *scanned, http1_request *out);
ssize_t http1_parse_response(const char *buf, size_t len, size_t *scanned, http1_response *out);

/* Returns the standard reason phrase; "": unknown status. */
const char *http1_reason(int status);
