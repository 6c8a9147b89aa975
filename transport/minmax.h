/* The smaller and the larger of two numbers, for all of the transport. */
#ifndef XLINK_MINMAX_H
#define XLINK_MINMAX_H

#include <stdint.h>

static inline uint64_t xl_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t xl_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

#endif
