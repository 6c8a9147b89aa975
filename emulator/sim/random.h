/* The random numbers of GnuTLS in the simulator: TLS random and key share come from a seeded generator.
 *
 * A program that uses this file replaces gnutls_rnd() for the whole process (transport/crypto/tls.c), so its keys are
 * not secret. The file is in no library; the Makefile links it only into xlink-sim. */
#pragma once

#include <stdint.h>

/* Seeds the generator and fixes the time of day that GnuTLS sees. */
void sim_random_seed(uint64_t seed);
/* Returns the bytes drawn since then. 0 after a handshake: this GnuTLS does not use the generator. */
uint64_t sim_random_drawn(void);

/* The time of day of every simulation, Unix seconds. */
#define SIM_EPOCH_S UINT64_C(1767225600)
