/* Preparations before mpshell changes the network: traces, links, output files. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Loads the traces and makes the links. False with a sentence in error. */
bool mp_setup_links(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Makes the directories of logs and captures, opens the files for the run's end. False with a sentence in error. */
bool mp_setup_output(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Returns a trace (a file, or a rate such as 12mbps), which it loads the first time. One thread at a time. NULL with a
 * sentence in error. */
const mp_trace *mp_setup_trace(mp_shell *shell, const char *given, char error[MP_ERROR_SIZE]);
/* Frees links, traces and output files. */
void mp_setup_free(mp_shell *shell);
