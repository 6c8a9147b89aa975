/* The clock of the real-time loop. */
#ifndef RAILYARD_MPSHELL_CLOCK_H
#define RAILYARD_MPSHELL_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in us. */
uint64_t mp_clock_us(void);

#endif
