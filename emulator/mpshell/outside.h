/* An outside that another process lends: for containers, where mpshell may not make namespaces (CAP_SYS_ADMIN).
 *
 * A TUN descriptor works wherever it is held; only making the device needs the namespace. So one mpshell
 * (--lend-outside SOCKET) stands in the server's network namespace, makes the outside devices there and passes their
 * descriptors through a Unix socket to another (--outside SOCKET), which stands in the client's namespace, makes the
 * inside devices in that, and runs the links. Both need CAP_NET_ADMIN in their namespace and nothing else.
 * The socket carries one request and one reply of fixed size each, SOCK_SEQPACKET, both ends of the same build; then
 * a request for the counters of the devices at the end. */
#ifndef RAILYARD_MPSHELL_OUTSIDE_H
#define RAILYARD_MPSHELL_OUTSIDE_H

#include "emulator/mpshell/shell.h"

/* Waits at options.lend_outside for one mpshell, makes its outside devices, and returns when that mpshell has gone:
 * 0, or -1 with a sentence in error. */
bool mp_outside_lend(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Has the devices made behind options.outside: fills in names, addresses and outside descriptors of the paths. Waits
 * some seconds for the other side to be there. False with a sentence in error. */
bool mp_outside_borrow(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Reads the drops of the outside devices into the paths. */
void mp_outside_count_drops(mp_shell *shell);

#endif
