/* The deadlines of an endpoint's connections, the earliest on top: a binary heap in which each connection knows its
 * place. A connection's deadline follows from all of its state, so nobody keeps it up to date change by change.
 * Whatever enters a connection touches it, and whoever asks for deadlines computes those of the touched ones first:
 *
 *     while ((c = xl_timer_heap_take_touched(&heap)))
 *         xl_timer_heap_set(&heap, c, xl_conn_next_timeout(c));
 *
 * Touching costs O(1), setting O(log n), whatever the number of connections that nothing happened to. */
#ifndef XL_ENDPOINT_TIMER_HEAP_H
#define XL_ENDPOINT_TIMER_HEAP_H

#include "connection/connection.h"

typedef struct {
    uint64_t at; /* µs; XL_NEVER: no timer runs */
    xl_connection *connection;
} xl_timer;

typedef struct {
    xl_timer *timer; /* the heap: timer[i] is not later than timer[2i + 1] and timer[2i + 2] */
    size_t count, cap;
    xl_connection **touched; /* whose deadlines are to be computed anew, in no order */
    size_t touched_count;
    xl_connection **due; /* of xl_timer_heap_due() */
} xl_timer_heap;

/* All zero is an empty heap. It does not own its connections. */
void xl_timer_heap_free(xl_timer_heap *);
/* Makes room for one more. 0 or XL_ERR_MEMORY; nothing else here can fail. */
int xl_timer_heap_reserve(xl_timer_heap *);
/* Room must be reserved. The connection begins touched, without a deadline. */
void xl_timer_heap_add(xl_timer_heap *, xl_connection *);
void xl_timer_heap_remove(xl_timer_heap *, xl_connection *);
/* Also of one that is touched already. */
void xl_timer_heap_touch(xl_timer_heap *, xl_connection *);
/* One that was touched and no longer is; NULL: none is left. */
xl_connection *xl_timer_heap_take_touched(xl_timer_heap *);
void xl_timer_heap_set(xl_timer_heap *, xl_connection *, uint64_t at);
uint64_t xl_timer_heap_get(const xl_timer_heap *, const xl_connection *);
uint64_t xl_timer_heap_earliest(const xl_timer_heap *); /* XL_NEVER: none */
/* Puts the connections with deadlines up to `now` into heap->due and returns their number, in time proportional to it.
 * Their order is that of the heap: none. */
size_t xl_timer_heap_due(xl_timer_heap *, uint64_t now);

#endif
