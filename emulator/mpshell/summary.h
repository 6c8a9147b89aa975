/* The summary of a run, as JSON. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "emulator/mpshell/mailbox.h"

/* Writes the summary to shell->summary, if that is wanted. status: COMMAND's wait status. False with a sentence in
 * error. */
bool mp_summary_write(const mp_shell *shell, int status, char error[MP_ERROR_SIZE]);

/* Returns "machine" of the summary: processor time during the run. */
json_t *mp_summary_machine(const mp_shell *shell);

/* Returns the figures of all links at one moment, as the control socket sends them. */
json_t *mp_summary_figures(const mp_shell *shell, const mp_figures *figures);
