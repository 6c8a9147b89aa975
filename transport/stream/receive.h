/* The receiving half of a stream: reassembly, final size, in-order reading. RFC 9000 section 3.2. Also used for CRYPTO.
 */
#pragma once

#include "recovery/ranges.h"

#define XL_RECV_SPARE_BYTES 65536 /* a ring of this size may stay, however little it holds */

typedef struct {
    uint8_t *ring;       /* the received parts of [read, read + cap) */
    size_t cap;          /* allocated: a power of two, grows as needed */
    uint64_t read;       /* the application has read everything below */
    uint64_t highest;    /* highest offset received */
    uint64_t final_size; /* UINT64_MAX until known */
    bool fin_delivered;
    xl_ranges received; /* at or above read */
} xl_recv;

void xl_recv_init(xl_recv *);
void xl_recv_free(xl_recv *);
/* Takes a piece of the stream; with len 0 and fin, the final size that RESET_STREAM has. window: highest absolute
 * offset allowed. Returns 0 or the transport error: FLOW_CONTROL, FINAL_SIZE, INTERNAL (no memory). *new_bytes: growth
 * of `highest`, for the connection's flow control. More than 4096 ranges are INTERNAL too, so that a peer that leaves
 * many gaps cannot exhaust memory. */
uint64_t xl_recv_insert(xl_recv *, uint64_t offset, const uint8_t *data, size_t len, bool fin, uint64_t window,
                        uint64_t *new_bytes);
/* After a reset: frees what was received and not read (RFC 9000 section 3.2). Its credit returns to the peer at once,
 * so it must not be held until the sending half ends. Nothing may be inserted afterwards. */
void xl_recv_discard(xl_recv *);
/* Shrinks a ring above XL_RECV_SPARE_BYTES if three quarters of it or more are unused. */
void xl_recv_shrink(xl_recv *);
size_t xl_recv_readable(const xl_recv *); /* contiguous bytes at `read` */
/* Copies up to cap bytes to buf. *fin: the last byte has been read. */
size_t xl_recv_read(xl_recv *, uint8_t *buf, size_t cap, bool *fin);
/* Whether the application has something to read: bytes, or the FIN. */
bool xl_recv_is_ready(const xl_recv *);
