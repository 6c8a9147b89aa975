/* The random numbers of one link and direction: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014), a separate stream for every (seed, path, direction). */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t state;
} link_rng;

static inline uint64_t link_mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t link_rng_next(link_rng *rng) {
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return link_mix64(rng->state);
}

/* Uniform in [0, 1), 53 bits. */
static inline double link_rng_uniform(link_rng *rng) {
    return (double)(link_rng_next(rng) >> 11) * 0x1.0p-53;
}

/* Returns the seed of one direction of one path: direction 0 is the uplink, 1 the downlink. */
static inline uint64_t link_seed(uint64_t seed, uint32_t path, uint32_t direction) {
    uint64_t stream = ((uint64_t)path << 1) | (direction & 1u);
    return link_mix64(link_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) ^
                      link_mix64(stream + UINT64_C(0x632be59bd9b4e019)));
}

/* Returns the seed of one effect's stream, derived from a direction's seed. */
static inline uint64_t link_substream(uint64_t seed, uint32_t effect) {
    return link_mix64(seed ^ link_mix64((uint64_t)effect * UINT64_C(0xd1342543de82ef95)));
}
