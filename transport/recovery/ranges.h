/* A set of uint64 as ascending, disjoint, non-adjacent half-open intervals [start, end). Used for received packet
 * numbers, acknowledged and lost stream offsets, reassembly. Insertion at the end (the usual case) is O(1). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t start, end;
} xl_range;

/* All zero is the empty set. */
typedef struct {
    xl_range *at; /* ascending */
    size_t count, cap;
} xl_ranges;

void xl_ranges_free(xl_ranges *);
int xl_ranges_add_anywhere(xl_ranges *, uint64_t start, uint64_t end); /* the general case of xl_ranges_add() */
/* 0 or XL_ERR_MEMORY. An empty interval adds nothing. */
static inline int xl_ranges_add(xl_ranges *r, uint64_t start, uint64_t end) {
    xl_range *newest = r->count > 0 ? &r->at[r->count - 1] : NULL;
    if (!newest || start < newest->start || start > newest->end)
        return xl_ranges_add_anywhere(r, start, end);
    if (end > newest->end) /* usually */
        newest->end = end;
    return 0;
}
int xl_ranges_remove(xl_ranges *, uint64_t start, uint64_t end); /* may split an interval */
bool xl_ranges_contains(const xl_ranges *, uint64_t value);
bool xl_ranges_covers(const xl_ranges *, uint64_t start, uint64_t end); /* all of [start, end) */
/* Finds the first part of [start, end) that is NOT in the set. Returns false if there is none. */
bool xl_ranges_first_gap(const xl_ranges *, uint64_t start, uint64_t end, xl_range *gap);
void xl_ranges_drop_below(xl_ranges *, uint64_t value); /* removes [0, value) */
void xl_ranges_keep_newest(xl_ranges *, size_t count);  /* removes the smallest intervals beyond count */
uint64_t xl_ranges_total(const xl_ranges *);            /* number of values in the set */
