/* HTTP/1.1 message heads (RFC 9112), sans-IO: what xlink-server and xlink-player need of them, strictly parsed.
 *
 * Bodies are counted by Content-Length only; a message with a transfer coding is refused. Nothing here allocates, and a
 * head is at most HTTP1_MAX_HEAD_BYTES long. */
#ifndef HTTP_HTTP1_H
#define HTTP_HTTP1_H

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
    char target[HTTP1_MAX_TARGET_BYTES + 1]; /* without "http://host", as it begins in requests by a proxy's rules */
    char range[HTTP1_MAX_RANGE_BYTES + 1];   /* value of Range, "" for none, for one too long, or with an If-Range */
    bool keep_alive;                         /* the client wants a further request on this connection */
} http1_request;

typedef struct {
    int status;
    bool has_content_length;
    uint64_t content_length;
    bool has_content_range; /* "bytes first-last/total" */
    uint64_t range_first, range_last, range_total;
    bool keep_alive;
} http1_response;

/* Parse the head at the start of buf. Returns
 *   > 0  its length: the message's body, or the next message, begins there
 *   0    the head is not complete yet (len < HTTP1_MAX_HEAD_BYTES)
 *   < 0  malformed or unsupported. For a request the negated status to answer with before closing: -400 bad syntax,
 *        -413 a body, -414 long target, -431 long head, -501 a transfer coding, -505 not HTTP/1.x.
 * *scanned remembers how far the end was looked for between calls with a growing buffer; start it at 0. */
ssize_t http1_parse_request(const char *buf, size_t len, size_t *scanned, http1_request *out);
ssize_t http1_parse_response(const char *buf, size_t len, size_t *scanned, http1_response *out);

/* Standard reason phrase, "" for a status that is not known. */
const char *http1_reason(int status);

#endif
