/* The control socket: commands that change the links while they run (docs/reference/mpshell.md). A command is one line,
 * its answer one line of JSON. A separate thread reads, parses and loads, so that no client can make packets late. */
#ifndef RAILYARD_MPSHELL_CONTROL_H
#define RAILYARD_MPSHELL_CONTROL_H

#include <stdbool.h>

#include "emulator/mpshell/mailbox.h"

typedef struct mp_control mp_control;

/* Listens on the socket at path (mode 0600; one that a dead mpshell left is replaced) and starts the thread. shell and
 * mailbox are borrowed until mp_control_stop. NULL with a sentence in error. */
mp_control *mp_control_start(const char *path, mp_shell *shell, mp_mailbox *mailbox, char error[MP_ERROR_SIZE]);
/* Ends the thread, after mp_mailbox_end, and removes the socket. The links must not run any more. NULL is allowed. */
void mp_control_stop(mp_control *control);

/* One command line into a request (of whose figures the caller takes care). False with a sentence in error.
 * It loads a trace that it names into the shell. */
bool mp_control_parse(mp_shell *shell, char *line, mp_request *request, char error[MP_ERROR_SIZE]);

#endif
