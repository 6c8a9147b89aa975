#include "tests/fuzz/repeatable.h"

#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "tests/fuzz/input.h"

#define EPOCH_S 1700000000

uint64_t fuzz_digest;

static uint64_t random_state = 1;

/* Replaces the library's function, also for the library itself, because GnuTLS calls it by its public name. */
int gnutls_rnd(gnutls_rnd_level_t level, void *out, size_t len) {
    uint8_t *p = out;
    (void)level;
    for (size_t i = 0; i < len; i++) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        p[i] = (uint8_t)(random_state >> 56);
    }
    return 0;
}

static time_t epoch(time_t *out) {
    if (out)
        *out = EPOCH_S;
    return EPOCH_S;
}

void fuzz_repeat_tls(void) {
    gnutls_global_set_time_function(epoch);
    random_state = 1;
}
