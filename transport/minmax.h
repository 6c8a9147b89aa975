/* The smaller and the larger of two numbers, for all of the transport. */
#pragma once

#include <stdint.h>

static inline uint64_t xl_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t xl_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
