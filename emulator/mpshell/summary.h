/* The summary of a run, as JSON. */
#ifndef RAILYARD_MPSHELL_SUMMARY_H
#define RAILYARD_MPSHELL_SUMMARY_H

#include "emulator/mpshell/shell.h"

/* Writes the summary beside its file and renames it, so that it is whole or not there. status is COMMAND's wait
 * status. Returns 0, or -1 with a sentence in error. */
int mp_summary_write(const struct mp_shell *shell, int status, char error[MP_ERROR_SIZE]);

#endif
