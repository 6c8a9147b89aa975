/* For tests: losses of an emulated link, bytes of a hostile peer. xoshiro256** (Blackman, Vigna 2018), seeded by
 * splitmix64. Four outputs determine all others, so the library uses crypto/random.h instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t s[4];
} xl_random;

static inline void xl_random_seed(xl_random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

static inline uint64_t xl_random_rotate(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t xl_random_next(xl_random *r) {
    uint64_t *s = r->s, result = xl_random_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = xl_random_rotate(s[3], 45);
    return result;
}

static inline void xl_random_bytes(xl_random *r, uint8_t *out, size_t len) {
    while (len > 0) {
        uint64_t v = xl_random_next(r);
        for (size_t i = 0; i < 8 && len > 0; i++, len--, v >>= 8)
            *out++ = (uint8_t)v;
    }
}
