/* The deadlines of an endpoint's connections: a binary heap with the earliest on top, in which each connection stores
 * its place. A connection's deadline depends on all of its state, so it is not updated with each change. Instead, each
 * call that enters a connection touches it, and before deadlines are read, those of touched connections are computed:
 *
 *     while ((c = xl_timer_heap_take_touched(&heap)))
 *         xl_timer_heap_set(&heap, c, xl_conn_next_timeout(c));
 *
 * Touching costs O(1), setting O(log n). Connections that were not touched cost nothing. */
#pragma once

#include "connection/connection.h"

typedef struct {
    uint64_t at; /* µs; XL_NEVER: no timer runs */
    xl_connection *connection;
} xl_timer;

typedef struct {
    xl_timer *timer; /* the heap: timer[i] is not later than timer[2i + 1] and timer[2i + 2] */
    size_t count, cap;
    xl_connection **touched; /* connections whose deadlines are to be computed, unordered */
    size_t touched_count;
    xl_connection **due; /* result of xl_timer_heap_due() */
} xl_timer_heap;

/* All zero is an empty heap. It does not own its connections. */
void xl_timer_heap_free(xl_timer_heap *);
/* Makes room for one more connection. 0 or XL_ERR_MEMORY; no other function here can fail. */
int xl_timer_heap_reserve(xl_timer_heap *);
/* Room must be reserved. The connection starts touched and without a deadline. */
void xl_timer_heap_add(xl_timer_heap *, xl_connection *);
void xl_timer_heap_remove(xl_timer_heap *, xl_connection *);
/* The connection may be touched already. */
void xl_timer_heap_touch(xl_timer_heap *, xl_connection *);
/* Removes and returns a touched connection; NULL: none is left. */
xl_connection *xl_timer_heap_take_touched(xl_timer_heap *);
void xl_timer_heap_set(xl_timer_heap *, xl_connection *, uint64_t at);
uint64_t xl_timer_heap_get(const xl_timer_heap *, const xl_connection *);
uint64_t xl_timer_heap_earliest(const xl_timer_heap *); /* XL_NEVER: none */
/* Stores the connections with deadlines up to `now` in heap->due, in no particular order, and returns their number.
 * Takes time proportional to it. */
size_t xl_timer_heap_due(xl_timer_heap *, uint64_t now);
