/* Byte copies into and out of a ring whose size is a power of two, addressed by stream offset. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t xl_ring_before_wrap(size_t cap, uint64_t offset, size_t len) {
    size_t room = cap - (size_t)(offset & (cap - 1));
    return len < room ? len : room;
}

static inline void xl_ring_put(uint8_t *ring, size_t cap, uint64_t offset, const uint8_t *data, size_t len) {
    if (len == 0)
        return;
    size_t n = xl_ring_before_wrap(cap, offset, len);
    memcpy(ring + (offset & (cap - 1)), data, n);
    if (n < len)
        memcpy(ring, data + n, len - n);
}

static inline void xl_ring_get(const uint8_t *ring, size_t cap, uint64_t offset, uint8_t *out, size_t len) {
    if (len == 0)
        return;
    size_t n = xl_ring_before_wrap(cap, offset, len);
    memcpy(out, ring + (offset & (cap - 1)), n);
    if (n < len)
        memcpy(out + n, ring, len - n);
}

/* Moves [start, end) into a ring of another size. */
static inline void xl_ring_move(uint8_t *to, size_t to_cap, const uint8_t *from, size_t from_cap, uint64_t start,
                                uint64_t end) {
    while (start < end) {
        size_t n = xl_ring_before_wrap(from_cap, start, (size_t)(end - start));
        xl_ring_put(to, to_cap, start, from + (start & (from_cap - 1)), n);
        start += n;
    }
}

/* The smallest power of two that holds `need`, at least `cap` (a power of two); 0 when there is none. */
static inline size_t xl_ring_size(size_t cap, uint64_t need) {
    while (cap != 0 && cap < need)
        cap *= 2;
    return cap;
}
