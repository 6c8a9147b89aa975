/* The random numbers of GnuTLS, in a process that simulates: TLS random and key share come from a seeded generator.
 *
 * A program that uses this file replaces gnutls_rnd() for the whole process (see transport/crypto/tls.c): its
 * keys are worth nothing. It is in no library, and the Makefile links it into xlink-sim alone. */
#ifndef RAILYARD_SIM_RANDOM_H
#define RAILYARD_SIM_RANDOM_H

#include <stdint.h>

/* Also fixes the time of day that GnuTLS sees. */
void sim_random_seed(uint64_t seed);
/* Bytes drawn since then; 0 after a handshake: this GnuTLS has not taken the generator. */
uint64_t sim_random_drawn(void);

/* The time of day of every simulation, Unix seconds. */
#define SIM_EPOCH_S UINT64_C(1767225600)

#endif
