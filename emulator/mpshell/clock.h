/* The clock of the real-time loop. */
#pragma once

#include <stdbool.h>

/* Whether this kernel's time jumps while no process runs (vkernel). */
bool mp_clock_is_virtual(void);
