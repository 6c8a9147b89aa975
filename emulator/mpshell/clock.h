/* The clock of the real-time loop. */
#ifndef RAILYARD_MPSHELL_CLOCK_H
#define RAILYARD_MPSHELL_CLOCK_H

#include <stdbool.h>

/* Whether this kernel's time jumps while no process runs (vkernel). */
bool mp_clock_is_virtual(void);

#endif
