/* --nat: what COMMAND sends beyond the outside machine leaves with the outside's address, by rules of iptables and
 * ip6tables that carry the name of the path's outside device. Rules of devices that are gone were left by an mpshell
 * that was killed, and the next start with --nat removes them. */
#ifndef RAILYARD_MPSHELL_NAT_H
#define RAILYARD_MPSHELL_NAT_H

#include "emulator/mpshell/shell.h"

/* In the outside namespace, once the devices are there. False with a sentence in error. */
bool mp_nat_start(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Removes the rules, if there are any. */
void mp_nat_stop(mp_shell *shell);

#endif
