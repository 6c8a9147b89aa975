/* The control socket: commands that change the links while they run (docs/reference/mpshell.md). A command is one line,
 * its answer one line of JSON. A separate thread reads commands and loads traces, so that no client delays packets. */
#pragma once

#include <stdbool.h>

#include "emulator/mpshell/mailbox.h"

typedef struct mp_control mp_control;

/* Listens on a socket at `path` (mode 0600; replaces that of a dead mpshell) and starts the thread. shell and mailbox
 * are borrowed until mp_control_stop. NULL with a sentence in error. */
mp_control *mp_control_start(const char *path, mp_shell *shell, mp_mailbox *mailbox, char error[MP_ERROR_SIZE]);
/* Ends the thread and removes the socket. Call it after mp_mailbox_end and the end of the links. NULL is allowed. */
void mp_control_stop(mp_control *control);

/* Parses a command line into a request, except its `figures`. Loads a trace that the command names into the shell.
 * False with a sentence in error. */
bool mp_control_parse(mp_shell *shell, char *line, mp_request *request, char error[MP_ERROR_SIZE]);
