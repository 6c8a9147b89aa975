#include "stream/send.h"

#include "minmax.h"
#include "stream/ring.h"
#include "xlink/xlink.h"

#include <stdint.h>
#include <stdlib.h>

#define MIN_CAP     1024
#define SHRINK_FROM 65536 /* a buffer of this size or more shrinks if at most half of it was used for a while */
#define A_WHILE     4     /* times its size: a buffer that shrinks and grows again moves its bytes twice */

void xl_send_init(xl_send *s, size_t limit) {
    *s = (xl_send){.limit = limit};
}

static void drop_ring(xl_send *s) {
    free(s->ring);
    s->ring = NULL;
    if (s->budget)
        xl_budget_give_back(s->budget, s->cap);
    s->cap = s->lent = 0;
}

void xl_send_abandon(xl_send *s) {
    drop_ring(s);
    xl_ranges_free(&s->acked);
    xl_ranges_free(&s->lost);
    s->base = s->written = s->sent;
}

void xl_send_free(xl_send *s) {
    xl_send_abandon(s);
    *s = (xl_send){0};
}

/* Returns the size that the ring may grow to. */
static size_t largest_cap(const xl_send *s) {
    size_t left = s->budget ? xl_budget_left(s->budget) : SIZE_MAX, cap = s->cap, next = cap ? 2 * cap : MIN_CAP;
    for (; cap < s->limit && next - s->cap <= left; next *= 2)
        cap = next;
    return cap;
}

size_t xl_send_capacity(const xl_send *s) {
    size_t held = (size_t)(s->written - s->base), cap = largest_cap(s), most = cap < s->limit ? cap : s->limit;
    return s->fin_written || held >= most ? 0 : most - held;
}

/* Resizes the ring. The caller accounts for the budget. */
static int resize(xl_send *s, size_t cap) {
    uint8_t *ring = malloc(cap);
    if (!ring)
        return XL_ERR_MEMORY;
    if (s->ring)
        xl_ring_move(ring, cap, s->ring, s->cap, s->base, s->written);
    free(s->ring);
    s->ring = ring;
    s->cap = cap;
    s->lent = 0;
    return 0;
}

/* Grows at once to the usual size if memory is plentiful, so that a buffer that runs empty from time to time does not
 * grow, and move, step by step. */
static int grow(xl_send *s, size_t need) {
    if (need <= s->cap)
        return 0;
    size_t old = s->cap, cap = xl_ring_size(old ? old : MIN_CAP, need);
    if (!cap)
        return XL_ERR_MEMORY;
    if (s->usual > cap && (!s->budget || xl_budget_has_plenty(s->budget, s->usual - old)))
        cap = s->usual;
    if (s->budget && !xl_budget_take(s->budget, cap - old))
        return XL_ERR_MEMORY;
    int error = resize(s, cap);
    if (error && s->budget)
        xl_budget_give_back(s->budget, cap - old);
    if (s->cap > s->usual) {
        s->usual = s->cap;
        s->judged_at = s->base + A_WHILE * s->cap;
    }
    return error;
}

static void take_in(xl_send *s, size_t len) {
    s->written += len;
    s->most_held = xl_max(s->most_held, (size_t)(s->written - s->base));
    s->lent = 0;
}

/* Adapts the usual size to the most bytes held while A_WHILE times its size was acknowledged. In a larger ring than is
 * needed, each place has left the processor's cache when it is written again. */
static void judge_size(xl_send *s, size_t held) {
    if (s->base < s->judged_at)
        return;
    if (s->usual >= SHRINK_FROM && s->most_held <= s->usual / 2)
        s->usual = xl_ring_size(MIN_CAP, s->most_held);
    s->most_held = held;
    s->judged_at = s->base + A_WHILE * s->usual;
}

/* Called after bytes were acknowledged. An idle stream holds no more than it needs. */
static void shrink(xl_send *s) {
    size_t held = (size_t)(s->written - s->base), old = s->cap;
    judge_size(s, held);
    if (held == 0)
        drop_ring(s);
    else if (s->usual < old && held <= s->usual && resize(s, s->usual) == 0 && s->budget)
        xl_budget_give_back(s->budget, old - s->cap);
}

void xl_send_reserve(xl_send *s, size_t len) {
    (void)grow(s, (size_t)(s->written - s->base) + xl_min(len, xl_send_capacity(s)));
}

ssize_t xl_send_write(xl_send *s, const uint8_t *data, size_t len) {
    size_t room = xl_send_capacity(s);
    if (len > room)
        len = room;
    if (len == 0)
        return 0;
    if (grow(s, (size_t)(s->written - s->base) + len) != 0)
        return XL_ERR_MEMORY;
    xl_ring_put(s->ring, s->cap, s->written, data, len);
    take_in(s, len);
    return (ssize_t)len;
}

size_t xl_send_space(xl_send *s, size_t len, uint8_t **at) {
    len = xl_min(len, xl_send_capacity(s));
    if (len == 0 || grow(s, (size_t)(s->written - s->base) + len) != 0)
        return s->lent = 0;
    *at = s->ring + (s->written & (s->cap - 1));
    return s->lent = xl_ring_before_wrap(s->cap, s->written, len);
}

bool xl_send_wrote(xl_send *s, size_t len) {
    if (len > s->lent)
        return false;
    take_in(s, len);
    if (s->written == s->base)
        drop_ring(s);
    return true;
}

void xl_send_finish(xl_send *s) {
    s->fin_written = true;
}

static bool has_new(const xl_send *s, uint64_t credit) {
    return s->sent < s->written && s->sent < credit;
}

/* Whether a FIN without data is due. */
static bool owes_end(const xl_send *s) {
    return s->sent == s->written && s->fin_written && (!s->fin_sent || s->fin_lost);
}

bool xl_send_next(const xl_send *s, uint64_t credit, size_t max_len, xl_send_piece *piece) {
    *piece = (xl_send_piece){.offset = s->sent};
    if (s->lost.count > 0) {
        piece->offset = s->lost.at[0].start;
        piece->len = xl_min(max_len, s->lost.at[0].end - piece->offset);
        piece->is_retransmission = true;
        if (piece->len == 0)
            return false;
    } else if (has_new(s, credit) && max_len > 0) {
        uint64_t end = s->written < credit ? s->written : credit;
        piece->len = xl_min(max_len, end - s->sent);
    } else if (owes_end(s)) {
        piece->is_retransmission = s->fin_lost;
        piece->fin = true;
        return true;
    } else {
        return false;
    }
    piece->fin = s->fin_written && !s->fin_acked && piece->offset + piece->len == s->written;
    return true;
}

bool xl_send_has_lost(const xl_send *s) {
    return s->lost.count > 0 || s->fin_lost;
}

bool xl_send_pending(const xl_send *s, uint64_t credit) {
    return s->lost.count > 0 || has_new(s, credit) || owes_end(s);
}

bool xl_send_is_flushed(const xl_send *s) {
    return s->fin_sent && s->sent == s->written && !xl_send_has_lost(s);
}

void xl_send_copy(const xl_send *s, uint64_t offset, uint8_t *out, size_t len) {
    uint64_t end = offset + len;
    uint64_t from = offset < s->base ? s->base : offset;
    uint64_t to = end > s->written ? s->written : end;
    if (from == offset && to == end) {
        xl_ring_get(s->ring, s->cap, offset, out, len);
        return;
    }
    if (from >= to) {
        memset(out, 0, len);
        return;
    }
    memset(out, 0, (size_t)(from - offset));
    xl_ring_get(s->ring, s->cap, from, out + (from - offset), (size_t)(to - from));
    memset(out + (to - offset), 0, (size_t)(end - to));
}

void xl_send_mark_sent(xl_send *s, const xl_send_piece *piece) {
    uint64_t end = piece->offset + piece->len;
    /* If there is no memory to split a range, it stays queued and is sent twice, which is harmless. */
    if (s->lost.count > 0)
        (void)xl_ranges_remove(&s->lost, piece->offset, end);
    if (end > s->sent)
        s->sent = end;
    if (piece->fin) {
        s->fin_sent = true;
        s->fin_lost = false;
    }
}

/* Clips [offset, offset + len) to the sent bytes from base on. */
static xl_range clip(const xl_send *s, uint64_t offset, size_t len) {
    uint64_t end = offset + len;
    return (xl_range){.start = offset < s->base ? s->base : offset, .end = end > s->sent ? s->sent : end};
}

static void forget_lost(xl_send *s, const xl_range *acked) {
    if (s->lost.count > 0)
        (void)xl_ranges_remove(&s->lost, acked->start, acked->end);
}

static void advance_base(xl_send *s) {
    if (s->acked.count == 0 || s->acked.at[0].start > s->base)
        return;
    s->base = s->acked.at[0].end;
    xl_ranges_drop_below(&s->acked, s->base);
    shrink(s);
}

uint64_t xl_send_mark_acked(xl_send *s, uint64_t offset, size_t len, bool fin) {
    if (fin && s->fin_sent) {
        s->fin_acked = true;
        s->fin_lost = false;
    }
    xl_range range = clip(s, offset, len), gap;
    uint64_t fresh = 0;
    if (s->acked.count == 0 && range.start == s->base && range.start < range.end) { /* everything was acknowledged in
                                                                                     * order */
        forget_lost(s, &range);
        s->base = range.end;
        shrink(s);
        return range.end - range.start;
    }
    for (uint64_t at = range.start; xl_ranges_first_gap(&s->acked, at, range.end, &gap); at = gap.end)
        fresh += gap.end - gap.start;
    if (fresh == 0)
        return 0;
    if (xl_ranges_add(&s->acked, range.start, range.end) != 0) {
        /* Out of memory: send it again rather than stall. */
        (void)xl_ranges_add(&s->lost, range.start, range.end);
        return 0;
    }
    forget_lost(s, &range);
    advance_base(s);
    return fresh;
}

void xl_send_mark_lost(xl_send *s, uint64_t offset, size_t len, bool fin) {
    if (fin && s->fin_sent && !s->fin_acked)
        s->fin_lost = true;
    xl_range range = clip(s, offset, len), gap;
    for (uint64_t at = range.start; xl_ranges_first_gap(&s->acked, at, range.end, &gap); at = gap.end)
        (void)xl_ranges_add(&s->lost, gap.start, gap.end);
}

bool xl_send_range_is_acked(const xl_send *s, uint64_t offset, size_t len, bool fin) {
    uint64_t end = offset + len;
    uint64_t start = offset < s->base ? s->base : offset;
    return (!fin || s->fin_acked) && (end <= s->base || xl_ranges_covers(&s->acked, start, end));
}

bool xl_send_is_settled(const xl_send *s) {
    return s->base == s->written && s->fin_acked == s->fin_written;
}

bool xl_send_is_done(const xl_send *s) {
    return s->fin_acked && s->base == s->written;
}
