/* The sending half of a stream: buffer from the first unacknowledged byte on, what is unsent, what is lost, what is
 * acknowledged. RFC 9000 section 3.1. Also used for CRYPTO streams. Flow control limits are passed in. The buffer grows
 * with what is in it, shrinks when little of it was in use for a while, and is freed while nothing is in it. */
#ifndef XL_STREAM_SEND_H
#define XL_STREAM_SEND_H

#include "recovery/ranges.h"
#include "stream/budget.h"

#include <sys/types.h>

typedef struct {
    uint8_t *ring;     /* holds [base, written) */
    size_t cap;        /* allocated, a power of two, less than twice the limit */
    xl_budget *budget; /* what cap is taken from; NULL: none */
    size_t limit;      /* most bytes held */
    size_t lent;       /* of xl_send_space(): bytes that may be written there; 0 once anything else was done */
    size_t usual;      /* what the ring was, and will be when there are bytes again */
    size_t most_held;  /* bytes, of late: until base is judged_at, when it decides what is usual */
    uint64_t judged_at;
    uint64_t base;    /* everything below is acknowledged */
    uint64_t written; /* end of what the application wrote */
    uint64_t sent;    /* highest offset ever sent: new data begins here */
    xl_ranges acked;  /* above base */
    xl_ranges lost;   /* to be sent again */
    bool fin_written, fin_sent, fin_lost, fin_acked;
} xl_send;

void xl_send_init(xl_send *, size_t limit);
void xl_send_free(xl_send *);
/* The peer gets no more of it: what is held is freed. `sent` stays what it is, the final size of RESET_STREAM. */
void xl_send_abandon(xl_send *);
/* Bytes that it takes now, by its limit and its budget. */
size_t xl_send_capacity(const xl_send *);
/* Makes the buffer as large as `len` bytes more will need, so that it does not grow and move with each write of them.
 * At most what capacity says; without memory nothing changes. */
void xl_send_reserve(xl_send *, size_t len);
/* Takes up to capacity bytes; returns how many, or XL_ERR_MEMORY. */
ssize_t xl_send_write(xl_send *, const uint8_t *data, size_t len);
/* Where the next bytes of the stream belong, to be written there instead: sets *at, and returns how many fit there, up
 * to len and to capacity, and fewer where the ring wraps. 0: none, or no memory. xl_send_wrote() takes the first len of
 * them. False: so many were not offered, or the ring has moved since; nothing is taken. */
size_t xl_send_space(xl_send *, size_t len, uint8_t **at);
bool xl_send_wrote(xl_send *, size_t len);
void xl_send_finish(xl_send *); /* FIN after what was written */

typedef struct {
    uint64_t offset;
    size_t len;
    bool fin;
    bool is_retransmission;
} xl_send_piece;

/* What to send next, at most max_len bytes, new data only below credit (absolute offset limit by flow control).
 * Lost data goes first. False when there is nothing. A lone FIN gives len 0. */
bool xl_send_next(const xl_send *, uint64_t credit, size_t max_len, xl_send_piece *);
bool xl_send_has_lost(const xl_send *);
/* Something to send now under that credit? */
bool xl_send_pending(const xl_send *, uint64_t credit);
/* The FIN was written, all of it was sent at least once and nothing waits for retransmission. */
bool xl_send_is_flushed(const xl_send *);
/* Bytes outside of [base, written) (acknowledged meanwhile: the receiver has them) come out as zeros. */
void xl_send_copy(const xl_send *, uint64_t offset, uint8_t *out, size_t len);
void xl_send_mark_sent(xl_send *, const xl_send_piece *);
/* Returns newly acknowledged bytes (0 if a duplicate was acknowledged before). */
uint64_t xl_send_mark_acked(xl_send *, uint64_t offset, size_t len, bool fin);
/* Queues for retransmission what of it is not acknowledged. */
void xl_send_mark_lost(xl_send *, uint64_t offset, size_t len, bool fin);
/* Whether all of the range (and the FIN if asked) is acknowledged. */
bool xl_send_range_is_acked(const xl_send *, uint64_t offset, size_t len, bool fin);
/* All that was written is acknowledged, and the FIN if there is one: nothing is to be sent, or sent again. */
bool xl_send_is_settled(const xl_send *);
bool xl_send_is_done(const xl_send *); /* FIN and everything before acknowledged */

#endif
