/* --nat: packets that COMMAND sends beyond the outside machine leave with the outside's address, by rules of iptables
 * and ip6tables that contain the name of the path's outside device. A rule whose device is gone was left by an mpshell
 * that was killed; the next start with --nat removes it. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Adds the rules. Call it in the outside namespace, once the devices exist. False with a sentence in error. */
bool mp_nat_start(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Removes the rules, if there are any. */
void mp_nat_stop(mp_shell *shell);
