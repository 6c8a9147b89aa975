#include "endpoint/timer_heap.h"

#include <stdlib.h>

#define FIRST_ROOM 8

void xl_timer_heap_free(xl_timer_heap *h) {
    free(h->timer);
    free(h->touched);
    free(h->due);
    *h = (xl_timer_heap){0};
}

int xl_timer_heap_reserve(xl_timer_heap *h) {
    if (h->count < h->cap)
        return 0;
    size_t cap = h->cap ? 2 * h->cap : FIRST_ROOM;
    xl_timer *timer = realloc(h->timer, cap * sizeof *timer);
    h->timer = timer ? timer : h->timer;
    xl_connection **touched = realloc(h->touched, cap * sizeof *touched);
    h->touched = touched ? touched : h->touched;
    xl_connection **due = realloc(h->due, cap * sizeof *due);
    h->due = due ? due : h->due;
    if (!timer || !touched || !due)
        return XL_ERR_MEMORY; /* arrays that have grown do no harm */
    h->cap = cap;
    return 0;
}

/* ---- The heap ---- */

static void place(xl_timer_heap *h, size_t slot, xl_timer t) {
    h->timer[slot] = t;
    t.connection->slot.timer = slot;
}

static void rise(xl_timer_heap *h, size_t slot, xl_timer t) {
    for (size_t parent; slot > 0 && t.at < h->timer[parent = (slot - 1) / 2].at; slot = parent)
        place(h, slot, h->timer[parent]);
    place(h, slot, t);
}

static void sink(xl_timer_heap *h, size_t slot, xl_timer t) {
    for (size_t child; (child = 2 * slot + 1) < h->count; slot = child) {
        if (child + 1 < h->count && h->timer[child + 1].at < h->timer[child].at)
            child++;
        if (t.at <= h->timer[child].at)
            break;
        place(h, slot, h->timer[child]);
    }
    place(h, slot, t);
}

static void settle(xl_timer_heap *h, size_t slot, xl_timer t) {
    if (slot > 0 && t.at < h->timer[(slot - 1) / 2].at)
        rise(h, slot, t);
    else
        sink(h, slot, t);
}

void xl_timer_heap_set(xl_timer_heap *h, xl_connection *c, uint64_t at) {
    if (h->timer[c->slot.timer].at != at)
        settle(h, c->slot.timer, (xl_timer){at, c});
}

uint64_t xl_timer_heap_get(const xl_timer_heap *h, const xl_connection *c) {
    return h->timer[c->slot.timer].at;
}

uint64_t xl_timer_heap_earliest(const xl_timer_heap *h) {
    return h->count ? h->timer[0].at : XL_NEVER;
}

static void add_if_due(xl_timer_heap *h, size_t slot, uint64_t now, size_t *n) {
    if (slot < h->count && h->timer[slot].at <= now)
        h->due[(*n)++] = h->timer[slot].connection;
}

/* No entry below one that is not due is due. The list of due connections also serves as the queue of entries whose
 * children are to be examined. */
size_t xl_timer_heap_due(xl_timer_heap *h, uint64_t now) {
    size_t n = 0;
    add_if_due(h, 0, now, &n);
    for (size_t seen = 0; seen < n; seen++) {
        size_t slot = h->due[seen]->slot.timer;
        add_if_due(h, 2 * slot + 1, now, &n);
        add_if_due(h, 2 * slot + 2, now, &n);
    }
    return n;
}

/* ---- Touched connections ---- */

void xl_timer_heap_touch(xl_timer_heap *h, xl_connection *c) {
    if (c->slot.is_touched)
        return;
    c->slot.is_touched = true;
    c->slot.touched_place = h->touched_count;
    h->touched[h->touched_count++] = c;
}

static void untouch(xl_timer_heap *h, xl_connection *c) {
    xl_connection *last = h->touched[--h->touched_count];
    h->touched[c->slot.touched_place] = last;
    last->slot.touched_place = c->slot.touched_place;
    c->slot.is_touched = false;
}

xl_connection *xl_timer_heap_take_touched(xl_timer_heap *h) {
    if (h->touched_count == 0)
        return NULL;
    xl_connection *c = h->touched[h->touched_count - 1];
    untouch(h, c);
    return c;
}

/* ---- Members ---- */

void xl_timer_heap_add(xl_timer_heap *h, xl_connection *c) {
    place(h, h->count++, (xl_timer){XL_NEVER, c});
    xl_timer_heap_touch(h, c);
}

void xl_timer_heap_remove(xl_timer_heap *h, xl_connection *c) {
    xl_timer last = h->timer[--h->count];
    if (last.connection != c)
        settle(h, c->slot.timer, last);
    if (c->slot.is_touched)
        untouch(h, c);
}
