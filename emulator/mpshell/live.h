/* --live: what the links do, on stderr: a table that is drawn again four times a second on a terminal, else a line for
 * each path every second. A thread of its own asks the loop for the figures. */
#ifndef RAILYARD_MPSHELL_LIVE_H
#define RAILYARD_MPSHELL_LIVE_H

#include "emulator/mpshell/mailbox.h"

typedef struct mp_live mp_live;

/* NULL without memory. shell and mailbox are borrowed until mp_live_stop. */
mp_live *mp_live_start(const mp_shell *shell, mp_mailbox *mailbox);
/* After mp_mailbox_end. NULL is allowed. */
void mp_live_stop(mp_live *live);

#endif
