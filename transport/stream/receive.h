/* The receiving half of a stream: reassembly, final size, in-order reading. RFC 9000 section 3.2. Also used for CRYPTO.
 */
#ifndef XL_STREAM_RECEIVE_H
#define XL_STREAM_RECEIVE_H

#include "recovery/ranges.h"

#define XL_RECV_SPARE_BYTES 65536 /* a ring that may stay, however little is in it */

typedef struct {
    uint8_t *ring;       /* holds [read, read + cap) where received */
    size_t cap;          /* allocated, a power of two, grows as needed, never beyond the window given */
    uint64_t read;       /* the application has taken everything below */
    uint64_t highest;    /* highest offset received */
    uint64_t final_size; /* UINT64_MAX until known */
    bool fin_delivered;
    xl_ranges received; /* at or above read */
} xl_recv;

void xl_recv_init(xl_recv *);
void xl_recv_free(xl_recv *);
/* Takes a piece. window: highest absolute offset allowed. Returns 0 or the transport error: FLOW_CONTROL, FINAL_SIZE,
 * INTERNAL (memory). *new_bytes: by how much `highest` grew (for connection flow control). A peer that leaves many
 * small gaps is bounded: over 4096 ranges is INTERNAL. */
uint64_t xl_recv_insert(xl_recv *, uint64_t offset, const uint8_t *data, size_t len, bool fin, uint64_t window,
                        uint64_t *new_bytes);
/* RESET_STREAM's final size. */
uint64_t xl_recv_reset(xl_recv *, uint64_t final_size, uint64_t window, uint64_t *new_bytes);
/* After a reset: what was received and not read is thrown away (RFC 9000 section 3.2). Its credit goes back to the
 * peer, so it must not be held until the sending half is over too. Nothing may be inserted afterwards. */
void xl_recv_discard(xl_recv *);
/* Gives back what a ring above XL_RECV_SPARE_BYTES does not need, where that is three quarters of it or more. */
void xl_recv_shrink(xl_recv *);
size_t xl_recv_readable(const xl_recv *); /* contiguous bytes at `read` */
/* Copies out up to cap bytes; *fin when the final byte has been taken. */
size_t xl_recv_read(xl_recv *, uint8_t *buf, size_t cap, bool *fin);
/* There is something for the application: bytes, or the FIN not yet delivered. */
bool xl_recv_is_ready(const xl_recv *);

#endif
