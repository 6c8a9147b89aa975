/* The files that grow while the links run: logs, exact times, captures. Threads write them. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Opens the files. Starts threads, so fork processes before. False with a sentence in error. */
bool mp_outputs_open(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Writes the opening lines. Call it once t0 is set. */
void mp_outputs_begin(mp_shell *shell);
/* Passes the gathered data to the threads. */
void mp_outputs_flush(mp_direction *direction);
/* Closes the files. False, after messages on stderr, if any is incomplete. */
bool mp_outputs_close(mp_shell *shell);
