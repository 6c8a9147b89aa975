/* --live: figures of the links on stderr. On a terminal a table that is redrawn four times a second, else a line for
 * each path every second. A separate thread asks the loop for the figures. */
#pragma once

#include "emulator/mpshell/mailbox.h"

typedef struct mp_live mp_live;

/* Returns NULL without memory, descriptor or thread. shell and mailbox are borrowed until mp_live_stop. */
mp_live *mp_live_start(const mp_shell *shell, mp_mailbox *mailbox);
/* Call it after mp_mailbox_end. NULL is allowed. */
void mp_live_stop(mp_live *live);
