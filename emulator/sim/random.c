#include "emulator/sim/random.h"

#include <stddef.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "emulator/link/rng.h"

static link_rng generator;
static uint64_t drawn;

static time_t fixed_time(time_t *out) {
    if (out)
        *out = (time_t)SIM_EPOCH_S;
    return (time_t)SIM_EPOCH_S;
}

void sim_random_seed(uint64_t seed) {
    generator.state = link_mix64(seed ^ UINT64_C(0x746c73206b657973));
    drawn = 0;
    gnutls_global_set_time_function(fixed_time);
}

uint64_t sim_random_drawn(void) {
    return drawn;
}

/* Replaces the library's function. */
int gnutls_rnd(gnutls_rnd_level_t level, void *data, size_t len) {
    (void)level;
    uint8_t *out = data;
    drawn += len;
    while (len > 0) {
        uint64_t number = link_rng_next(&generator);
        size_t n = len < sizeof number ? len : sizeof number;
        for (size_t i = 0; i < n; i++)
            *out++ = (uint8_t)(number >> (8 * i));
        len -= n;
    }
    return GNUTLS_E_SUCCESS;
}
