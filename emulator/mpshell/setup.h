/* What mpshell prepares before it touches the network: traces, links, places for output. */
#ifndef RAILYARD_MPSHELL_SETUP_H
#define RAILYARD_MPSHELL_SETUP_H

#include "emulator/mpshell/shell.h"

/* Loads the traces and makes the links. False with a sentence in error. */
bool mp_setup_links(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Makes --log-dir and opens the places of the summary and the counters. False with a sentence in error. */
bool mp_setup_output(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Loads a trace, or finds it if it is loaded: a file, or a rate such as 12mbps. One thread at a time. NULL with a
 * sentence in error. */
const mp_trace *mp_setup_trace(mp_shell *shell, const char *given, char error[MP_ERROR_SIZE]);
/* Frees links and traces. */
void mp_setup_free(mp_shell *shell);

#endif
