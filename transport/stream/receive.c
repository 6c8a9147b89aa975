#include "stream/receive.h"

#include "stream/ring.h"
#include "wire/frame.h"

#include <stdlib.h>

#define MIN_CAP    512
#define MAX_RANGES 4096 /* enough for two interleaved paths over the largest window */
#define UNKNOWN    UINT64_MAX

void xl_recv_init(xl_recv *r) {
    *r = (xl_recv){.final_size = UNKNOWN};
}

void xl_recv_free(xl_recv *r) {
    free(r->ring);
    xl_ranges_free(&r->received);
    xl_recv_init(r);
}

static bool resize(xl_recv *r, size_t cap) {
    uint8_t *ring = cap ? malloc(cap) : NULL;
    if (!ring)
        return false;
    for (size_t i = 0; i < r->received.count; i++)
        xl_ring_move(ring, cap, r->ring, r->cap, r->received.at[i].start, r->received.at[i].end);
    free(r->ring);
    r->ring = ring;
    r->cap = cap;
    return true;
}

/* Makes room for [read, end). `end` is within the flow control window, which bounds the memory. */
static bool grow(xl_recv *r, uint64_t end) {
    uint64_t need = end - r->read;
    return need <= r->cap || resize(r, xl_ring_size(r->cap ? r->cap : MIN_CAP, need));
}

void xl_recv_shrink(xl_recv *r) {
    uint64_t need = r->received.count > 0 ? r->received.at[r->received.count - 1].end - r->read : 0;
    if (r->cap <= XL_RECV_SPARE_BYTES || need > r->cap / 4)
        return;
    if (need > 0)
        (void)resize(r, xl_ring_size(MIN_CAP, need));
    else
        xl_recv_discard(r);
}

/* RFC 9000 sections 4.1 and 4.5. */
static uint64_t check_end(const xl_recv *r, uint64_t end, bool is_final, uint64_t window) {
    if (r->final_size != UNKNOWN && (end > r->final_size || (is_final && end != r->final_size)))
        return XL_QERR_FINAL_SIZE;
    if (is_final && end < r->highest)
        return XL_QERR_FINAL_SIZE;
    return end > window ? XL_QERR_FLOW_CONTROL : 0;
}

static uint64_t store(xl_recv *r, uint64_t offset, const uint8_t *data, uint64_t end) {
    if (offset < r->read) {
        if (end <= r->read)
            return 0;
        data += r->read - offset;
        offset = r->read;
    }
    if (offset < r->highest && xl_ranges_covers(&r->received, offset, end))
        return 0;
    if (!grow(r, end) || xl_ranges_add(&r->received, offset, end) != 0 || r->received.count > MAX_RANGES)
        return XL_QERR_INTERNAL;
    xl_ring_put(r->ring, r->cap, offset, data, (size_t)(end - offset));
    return 0;
}

uint64_t xl_recv_insert(xl_recv *r, uint64_t offset, const uint8_t *data, size_t len, bool fin, uint64_t window,
                        uint64_t *new_bytes) {
    *new_bytes = 0;
    if (offset > UINT64_MAX - len)
        return XL_QERR_FLOW_CONTROL;
    uint64_t end = offset + len;
    uint64_t error = check_end(r, end, fin, window);
    if (error == 0 && len > 0)
        error = store(r, offset, data, end);
    if (error != 0)
        return error;
    if (fin)
        r->final_size = end;
    if (end > r->highest) {
        *new_bytes = end - r->highest;
        r->highest = end;
    }
    return 0;
}

void xl_recv_discard(xl_recv *r) {
    free(r->ring);
    r->ring = NULL;
    r->cap = 0;
    xl_ranges_free(&r->received);
}

size_t xl_recv_readable(const xl_recv *r) {
    if (r->received.count == 0 || r->received.at[0].start != r->read)
        return 0;
    return (size_t)(r->received.at[0].end - r->read);
}

/* Frees an empty ring, so that a stream that carries little, such as HTTP/3's control streams, holds no memory. A ring
 * larger than MIN_CAP is kept for the next packet, until the end of the stream. */
static void rest(xl_recv *r, bool at_end) {
    if (r->received.count > 0 || (r->cap > MIN_CAP && !at_end))
        return;
    xl_recv_discard(r);
}

size_t xl_recv_read(xl_recv *r, uint8_t *buf, size_t cap, bool *fin) {
    size_t len = xl_recv_readable(r);
    if (len > cap)
        len = cap;
    if (len > 0) {
        xl_ring_get(r->ring, r->cap, r->read, buf, len);
        r->read += len;
        xl_ranges_drop_below(&r->received, r->read);
    }
    *fin = r->read == r->final_size;
    r->fin_delivered |= *fin;
    rest(r, *fin);
    return len;
}

bool xl_recv_is_ready(const xl_recv *r) {
    return xl_recv_readable(r) > 0 || (r->read == r->final_size && !r->fin_delivered);
}
