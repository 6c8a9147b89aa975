#include "recovery/ledger.h"

#include "xlink/xlink.h"

#include <stdlib.h>

#define MIN_CAP  16
#define LOST_CAP 8192 /* a ring of this many entries does not grow to remember lost packets */

static xl_sent_packet *slot(const xl_ledger *l, uint64_t pn) {
    return &l->ring[pn & (l->cap - 1)];
}

static void drop_head(xl_ledger *l) {
    if (slot(l, l->first_pn)->state == XL_SENT_SKIPPED)
        l->skipped--;
    l->first_pn++;
    if (l->cursor < l->first_pn)
        l->cursor = l->first_pn;
}

static void drop_settled(xl_ledger *l) {
    while (l->first_pn < l->next_pn) {
        uint8_t state = slot(l, l->first_pn)->state;
        if (state != XL_SENT_ACKED && state != XL_SENT_SKIPPED)
            return;
        drop_head(l);
    }
}

static void advance_cursor(xl_ledger *l) {
    while (l->cursor < l->next_pn && slot(l, l->cursor)->state != XL_SENT_OUTSTANDING)
        l->cursor++;
}

/* Whether the packet may be forgotten: it is outstanding, and neither its arrival nor its loss would change anything;
 * or it is lost, and the ring is large. A late acknowledgement of a lost packet is useful, but a peer that acknowledges
 * all but one packet must not make a large ring larger. */
static bool is_inconsequential(const xl_ledger *l, const xl_sent_packet *p) {
    if (p->state == XL_SENT_LOST)
        return l->cap >= LOST_CAP && !p->frames;
    return p->state == XL_SENT_OUTSTANDING && !p->in_flight && !p->ack_eliciting && !p->frames;
}

static bool resize(xl_ledger *l, size_t cap) {
    xl_sent_packet *ring = calloc(cap, sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t pn = l->first_pn; pn < l->next_pn; pn++)
        ring[pn & (cap - 1)] = *slot(l, pn);
    free(l->ring);
    l->ring = ring;
    l->cap = cap;
    return true;
}

static bool make_room(xl_ledger *l) {
    if (l->next_pn - l->first_pn < l->cap)
        return true;
    drop_settled(l);
    while (l->first_pn < l->next_pn && is_inconsequential(l, slot(l, l->first_pn))) {
        l->outstanding -= slot(l, l->first_pn)->state == XL_SENT_OUTSTANDING;
        drop_head(l);
        drop_settled(l);
    }
    /* Grow unless a quarter of the ring is free: with less, this loop would run at almost every push. */
    if (l->cap > 0 && l->next_pn - l->first_pn <= l->cap - l->cap / 4)
        return true;
    return resize(l, l->cap ? 2 * l->cap : MIN_CAP) || l->next_pn - l->first_pn < l->cap;
}

static xl_sent_packet *append(xl_ledger *l, xl_sent_state state) {
    if (!make_room(l))
        return NULL;
    xl_sent_packet *p = slot(l, l->next_pn);
    *p = (xl_sent_packet){.pn = l->next_pn++, .state = (uint8_t)state};
    return p;
}

void xl_ledger_init(xl_ledger *l) {
    *l = (xl_ledger){.largest_acked = UINT64_MAX, .last_skipped = UINT64_MAX};
}

void xl_ledger_start_at(xl_ledger *l, uint64_t pn) {
    l->start = l->first_pn = l->next_pn = l->cursor = pn;
}

void xl_ledger_free(xl_ledger *l) {
    free(l->ring);
    xl_ledger_init(l);
}

void xl_ledger_shrink(xl_ledger *l) {
    size_t entries = (size_t)(l->next_pn - l->first_pn), cap = MIN_CAP;
    while (cap < 2 * entries)
        cap *= 2;
    if (entries > 0) {
        if (cap < l->cap)
            (void)resize(l, cap);
        return;
    }
    free(l->ring);
    l->ring = NULL;
    l->cap = 0;
}

xl_sent_packet *xl_ledger_push(xl_ledger *l) {
    xl_sent_packet *p = append(l, XL_SENT_OUTSTANDING);
    if (p)
        l->outstanding++;
    return p;
}

int xl_ledger_skip(xl_ledger *l) {
    xl_sent_packet *p = append(l, XL_SENT_SKIPPED);
    if (!p)
        return XL_ERR_MEMORY;
    l->last_skipped = p->pn;
    l->skipped++;
    return 0;
}

xl_sent_packet *xl_ledger_find(xl_ledger *l, uint64_t pn) {
    if (pn < l->first_pn || pn >= l->next_pn || slot(l, pn)->state == XL_SENT_SKIPPED)
        return NULL;
    return slot(l, pn);
}

static bool names_skipped(const xl_ledger *l, uint64_t smallest, uint64_t largest) {
    if (smallest < l->start || (smallest <= l->last_skipped && l->last_skipped <= largest))
        return true;
    if (l->skipped <= 1) /* the only one left is last_skipped */
        return false;
    for (uint64_t pn = smallest < l->first_pn ? l->first_pn : smallest; pn <= largest; pn++)
        if (slot(l, pn)->state == XL_SENT_SKIPPED)
            return true;
    return false;
}

int xl_ledger_ack(xl_ledger *l, uint64_t smallest, uint64_t largest, xl_ledger_fn acked, void *user) {
    if (smallest > largest || largest >= l->next_pn || names_skipped(l, smallest, largest))
        return -1;
    if (l->largest_acked == UINT64_MAX || largest > l->largest_acked)
        l->largest_acked = largest;
    for (uint64_t pn = smallest < l->first_pn ? l->first_pn : smallest; pn <= largest; pn++) {
        xl_sent_packet *p = slot(l, pn);
        if (p->state == XL_SENT_OUTSTANDING)
            l->outstanding--;
        else if (p->state != XL_SENT_LOST)
            continue;
        acked(user, p);
        /* The callback may have emptied the ledger (keys discarded). */
        if (pn < l->first_pn)
            return 0;
        slot(l, pn)->state = XL_SENT_ACKED;
    }
    drop_settled(l);
    return 0;
}

static void lose(xl_ledger *l, uint64_t pn, xl_ledger_fn lost, void *user) {
    xl_sent_packet *p = slot(l, pn);
    l->outstanding--;
    p->state = XL_SENT_LOST;
    lost(user, p);
}

uint64_t xl_ledger_detect_lost(xl_ledger *l, uint64_t now, uint64_t loss_delay_us, xl_ledger_fn lost, void *user) {
    if (l->largest_acked == UINT64_MAX)
        return XL_NEVER;
    for (;;) {
        advance_cursor(l);
        if (l->cursor >= l->next_pn || l->cursor >= l->largest_acked)
            return XL_NEVER;
        /* Later packets are both younger and nearer to largest_acked, so the search ends at the first that is not
         * lost. */
        const xl_sent_packet *p = slot(l, l->cursor);
        bool is_old = now >= p->time_us && now - p->time_us >= loss_delay_us;
        if (l->largest_acked - p->pn < XL_PACKET_THRESHOLD && !is_old)
            return p->time_us + loss_delay_us;
        lose(l, p->pn, lost, user);
    }
}

void xl_ledger_lose_all(xl_ledger *l, int path, xl_ledger_fn lost, void *user) {
    advance_cursor(l);
    uint64_t end = l->next_pn;
    for (uint64_t pn = l->cursor; pn < end; pn++) {
        const xl_sent_packet *p = slot(l, pn);
        if (pn >= l->first_pn && p->state == XL_SENT_OUTSTANDING && (path < 0 || p->path == path))
            lose(l, pn, lost, user);
    }
}

xl_sent_packet *xl_ledger_oldest(xl_ledger *l, int path) {
    advance_cursor(l);
    for (uint64_t pn = l->cursor; pn < l->next_pn; pn++) {
        xl_sent_packet *p = slot(l, pn);
        if (p->state == XL_SENT_OUTSTANDING && p->ack_eliciting && (path < 0 || p->path == path))
            return p;
    }
    return NULL;
}

static bool is_remembered(const xl_sent_packet *p) {
    return p->state == XL_SENT_OUTSTANDING || p->state == XL_SENT_LOST;
}

void xl_ledger_forget_path(xl_ledger *l, int path, xl_ledger_fn fn, void *user) {
    for (uint64_t pn = l->first_pn; pn < l->next_pn; pn++) {
        xl_sent_packet *p = slot(l, pn);
        if (!is_remembered(p) || p->path != path)
            continue;
        l->outstanding -= p->state == XL_SENT_OUTSTANDING;
        fn(user, p);
        p->state = XL_SENT_ACKED;
    }
    drop_settled(l);
}

void xl_ledger_drain(xl_ledger *l, xl_ledger_fn fn, void *user) {
    for (uint64_t pn = l->first_pn; pn < l->next_pn; pn++) {
        xl_sent_packet *p = slot(l, pn);
        if (is_remembered(p))
            fn(user, p);
    }
    l->first_pn = l->cursor = l->next_pn;
    l->outstanding = l->skipped = 0;
}

void xl_ledger_trim(xl_ledger *l, uint64_t before_us) {
    for (drop_settled(l); l->first_pn < l->next_pn; drop_settled(l)) {
        const xl_sent_packet *p = slot(l, l->first_pn);
        if (p->state != XL_SENT_LOST || p->time_us >= before_us)
            return;
        drop_head(l);
    }
}
