#include "recovery/ranges.h"

#include "xlink/xlink.h"

#include <stdlib.h>
#include <string.h>

#define MIN_CAP 8

void xl_ranges_free(xl_ranges *r) {
    free(r->at);
    *r = (xl_ranges){0};
}

/* Index of the first interval whose end is above `value`, or count. */
static size_t first_ending_above(const xl_ranges *r, uint64_t value) {
    size_t low = 0, high = r->count;
    /* The newest interval is needed most often, then the oldest, of the slower path. */
    if (high == 0 || r->at[high - 1].end <= value)
        return high;
    if (high == 1 || r->at[high - 2].end <= value)
        return high - 1;
    if (r->at[0].end > value)
        return 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->at[mid].end > value)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static void erase(xl_ranges *r, size_t from, size_t to) {
    if (from == to)
        return;
    if (to < r->count)
        memmove(r->at + from, r->at + to, (r->count - to) * sizeof *r->at);
    r->count -= to - from;
}

static int insert(xl_ranges *r, size_t index, xl_range range) {
    if (r->count == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : MIN_CAP;
        xl_range *at = realloc(r->at, cap * sizeof *at);
        if (!at)
            return XL_ERR_MEMORY;
        r->at = at;
        r->cap = cap;
    }
    if (index < r->count)
        memmove(r->at + index + 1, r->at + index, (r->count - index) * sizeof *r->at);
    r->at[index] = range;
    r->count++;
    return 0;
}

int xl_ranges_add_anywhere(xl_ranges *r, uint64_t start, uint64_t end) {
    if (start >= end)
        return 0;
    /* Start at the interval that ends exactly at start, if any: it touches the new one and merges with it. */
    size_t i = start == 0 ? 0 : first_ending_above(r, start - 1);
    if (i == r->count || r->at[i].start > end)
        return insert(r, i, (xl_range){start, end});
    size_t last = i;
    while (last + 1 < r->count && r->at[last + 1].start <= end)
        last++;
    if (r->at[i].start > start)
        r->at[i].start = start;
    r->at[i].end = r->at[last].end > end ? r->at[last].end : end;
    erase(r, i + 1, last + 1);
    return 0;
}

int xl_ranges_remove(xl_ranges *r, uint64_t start, uint64_t end) {
    if (start >= end || r->count == 0)
        return 0;
    size_t i = first_ending_above(r, start);
    if (i == r->count || r->at[i].start >= end)
        return 0;
    if (r->at[i].start < start && r->at[i].end > end) {
        int rc = insert(r, i + 1, (xl_range){end, r->at[i].end});
        if (rc == 0)
            r->at[i].end = start;
        return rc;
    }
    if (r->at[i].start < start)
        r->at[i++].end = start;
    size_t whole = i;
    while (whole < r->count && r->at[whole].end <= end)
        whole++;
    if (whole < r->count && r->at[whole].start < end)
        r->at[whole].start = end;
    erase(r, i, whole);
    return 0;
}

bool xl_ranges_contains(const xl_ranges *r, uint64_t value) {
    size_t i = first_ending_above(r, value);
    return i < r->count && r->at[i].start <= value;
}

bool xl_ranges_covers(const xl_ranges *r, uint64_t start, uint64_t end) {
    if (start >= end)
        return true;
    size_t i = first_ending_above(r, start);
    return i < r->count && r->at[i].start <= start && r->at[i].end >= end;
}

bool xl_ranges_first_gap(const xl_ranges *r, uint64_t start, uint64_t end, xl_range *gap) {
    if (start >= end)
        return false;
    size_t i = first_ending_above(r, start);
    if (i < r->count && r->at[i].start <= start)
        start = r->at[i++].end;
    if (start >= end)
        return false;
    gap->start = start;
    gap->end = i < r->count && r->at[i].start < end ? r->at[i].start : end;
    return true;
}

void xl_ranges_drop_below(xl_ranges *r, uint64_t value) {
    size_t gone = 0;
    while (gone < r->count && r->at[gone].end <= value)
        gone++;
    if (gone < r->count && r->at[gone].start < value)
        r->at[gone].start = value;
    erase(r, 0, gone);
}

void xl_ranges_keep_newest(xl_ranges *r, size_t count) {
    if (r->count > count)
        erase(r, 0, r->count - count);
}

uint64_t xl_ranges_total(const xl_ranges *r) {
    uint64_t total = 0;
    for (size_t i = 0; i < r->count; i++)
        total += r->at[i].end - r->at[i].start;
    return total;
}
