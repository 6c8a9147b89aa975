/* The sending half of a stream: the buffer from the first unacknowledged byte on, and which bytes are unsent, lost or
 * acknowledged. RFC 9000 section 3.1. Also used for CRYPTO streams. Flow control limits are passed in. The buffer grows
 * with its content, shrinks if little of it was used for a while, and is freed when empty. */
#pragma once

#include "recovery/ranges.h"
#include "stream/budget.h"

#include <sys/types.h>

typedef struct {
    uint8_t *ring;     /* holds [base, written) */
    size_t cap;        /* allocated, a power of two, less than twice the limit */
    xl_budget *budget; /* budget that pays for cap; NULL: none */
    size_t limit;      /* most bytes held */
    size_t lent;       /* bytes that xl_send_space() offered; 0 after any other change */
    size_t usual;      /* size that the ring grows to again after it was empty */
    size_t most_held;  /* most bytes held until base reaches judged_at, when it decides `usual` */
    uint64_t judged_at;
    uint64_t base;    /* everything below is acknowledged */
    uint64_t written; /* end of what the application wrote */
    uint64_t sent;    /* highest offset sent: new data begins here */
    xl_ranges acked;  /* above base */
    xl_ranges lost;   /* to be sent again */
    bool fin_written, fin_sent, fin_lost, fin_acked;
} xl_send;

void xl_send_init(xl_send *, size_t limit);
void xl_send_free(xl_send *);
/* Frees the buffer: the peer gets no more of the stream. `sent` stays as the final size of RESET_STREAM. */
void xl_send_abandon(xl_send *);
/* Bytes that it takes now: what its limit and its budget leave. */
size_t xl_send_capacity(const xl_send *);
/* Makes room for `len` more bytes at once, so that the buffer does not grow and move with each write of them. At most
 * xl_send_capacity(); without memory nothing changes. */
void xl_send_reserve(xl_send *, size_t len);
/* Takes up to capacity bytes. Returns how many, or XL_ERR_MEMORY. */
ssize_t xl_send_write(xl_send *, const uint8_t *data, size_t len);
/* The same without a copy. Sets *at to the place of the stream's next bytes, and returns how many fit there: up to len
 * and to capacity, and fewer if the ring wraps. 0: none, or no memory. xl_send_wrote() takes the first len of them.
 * False: more than were offered, or the ring has moved since; nothing is taken. */
size_t xl_send_space(xl_send *, size_t len, uint8_t **at);
bool xl_send_wrote(xl_send *, size_t len);
void xl_send_finish(xl_send *); /* FIN after what was written */

typedef struct {
    uint64_t offset;
    size_t len;
    bool fin;
    bool is_retransmission;
} xl_send_piece;

/* What to send next: at most max_len bytes, new data only below `credit`, the absolute offset that flow control allows.
 * Lost data goes first. False: nothing. A FIN alone has len 0. */
bool xl_send_next(const xl_send *, uint64_t credit, size_t max_len, xl_send_piece *);
bool xl_send_has_lost(const xl_send *);
/* Whether there is something to send now under that credit. */
bool xl_send_pending(const xl_send *, uint64_t credit);
/* Whether the FIN was written, everything was sent at least once and nothing waits for retransmission. */
bool xl_send_is_flushed(const xl_send *);
/* Bytes outside of [base, written) come out as zeros: they were acknowledged, so the receiver has them. */
void xl_send_copy(const xl_send *, uint64_t offset, uint8_t *out, size_t len);
void xl_send_mark_sent(xl_send *, const xl_send_piece *);
/* Returns the number of newly acknowledged bytes, 0 for a duplicate. */
uint64_t xl_send_mark_acked(xl_send *, uint64_t offset, size_t len, bool fin);
/* Queues the unacknowledged part of the range for retransmission. */
void xl_send_mark_lost(xl_send *, uint64_t offset, size_t len, bool fin);
/* Whether all of the range (and the FIN, if `fin`) is acknowledged. */
bool xl_send_range_is_acked(const xl_send *, uint64_t offset, size_t len, bool fin);
/* Whether all that was written is acknowledged, and the FIN if there is one: nothing is left to send. */
bool xl_send_is_settled(const xl_send *);
bool xl_send_is_done(const xl_send *); /* FIN and everything before acknowledged */
