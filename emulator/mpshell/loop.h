/* The real-time loop: moves packets from the devices through the links until COMMAND ends. */
#pragma once

#include "emulator/mpshell/command.h"
#include "emulator/mpshell/shell.h"

/* Starts COMMAND, sets t0 (before that, or with --start-when-ready once COMMAND is ready) and runs until COMMAND has
 * ended. signal_fd: signals to pass on to COMMAND.
 * on_start is called once t0 is set, before COMMAND starts or continues.
 * True with COMMAND's wait status in *status, or false with a sentence in error. COMMAND is gone in both cases. */
bool mp_loop_run(mp_shell *shell, mp_command *command, int signal_fd, void (*on_start)(mp_shell *), int *status,
                 char error[MP_ERROR_SIZE]);
