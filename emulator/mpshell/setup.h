/* What mpshell prepares before it touches the network: traces, links, places for output. */
#ifndef RAILYARD_MPSHELL_SETUP_H
#define RAILYARD_MPSHELL_SETUP_H

#include "emulator/mpshell/shell.h"

/* Loads the traces and makes the links. Returns 0, or -1 with a sentence in error. */
int mp_setup_links(struct mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Makes --log-dir and checks that the summary can be written. Returns 0, or -1 with a sentence in error. */
int mp_setup_output(struct mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Opens the log files. It starts threads, so processes are to be made before. */
int mp_setup_logs(struct mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Writes the opening lines of the logs, once t0 is known. */
void mp_setup_log_headers(struct mp_shell *shell);
/* Closes the log files; tells on stderr what could not be written. */
void mp_setup_close_logs(struct mp_shell *shell);
/* Frees links and traces. */
void mp_setup_free(struct mp_shell *shell);

#endif
