/* The files that fill while the links run: logs, exact times, captures. Writing is done by threads. */
#ifndef RAILYARD_MPSHELL_OUTPUTS_H
#define RAILYARD_MPSHELL_OUTPUTS_H

#include "emulator/mpshell/shell.h"

/* Opens the files. It starts threads, so processes are to be made before. False with a sentence in error. */
bool mp_outputs_open(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Writes the opening lines, once t0 is known. */
void mp_outputs_begin(mp_shell *shell);
/* Hands to the threads what is gathered. */
void mp_outputs_flush(mp_direction *direction);
/* Closes the files; tells on stderr what could not be written, and returns false then. */
bool mp_outputs_close(mp_shell *shell);

#endif
