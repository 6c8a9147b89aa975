/* xoshiro256** (Blackman, Vigna 2018), seeded by splitmix64: CIDs, challenges, packet-number skips. The endpoint's seed
 * decides its quality: a driver on a real network seeds it from the system, a simulation from its job. */
#ifndef XL_CONNECTION_RANDOM_H
#define XL_CONNECTION_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t s[4];
} xl_random;

void xl_random_seed(xl_random *, uint64_t seed);
uint64_t xl_random_next(xl_random *);
void xl_random_bytes(xl_random *, uint8_t *out, size_t len);

#endif
