/* The summary of a run, as JSON. */
#ifndef RAILYARD_MPSHELL_SUMMARY_H
#define RAILYARD_MPSHELL_SUMMARY_H

#include <stdbool.h>

#include <jansson.h>

#include "emulator/mpshell/mailbox.h"

/* Writes the summary to its place, shell->summary. status is COMMAND's wait status. False with a sentence
 * in error. */
bool mp_summary_write(const mp_shell *shell, int status, char error[MP_ERROR_SIZE]);

/* What the processors did meanwhile: "machine" of the summary. */
json_t *mp_summary_machine(const mp_shell *shell);

/* The figures of all paths at one moment, as the control socket tells them. */
json_t *mp_summary_figures(const mp_shell *shell, const mp_figures *figures);

#endif
