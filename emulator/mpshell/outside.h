/* An outside namespace that another process lends, for containers, in which mpshell may not make namespaces
 * (CAP_SYS_ADMIN).
 *
 * Making a TUN device needs its namespace; its descriptor then works anywhere. So one mpshell (--lend-outside SOCKET)
 * in the server's network namespace makes the outside devices and passes their descriptors through a Unix socket to
 * another (--outside SOCKET) in the client's namespace, which makes the inside devices and runs the links. Both need
 * CAP_NET_ADMIN in their namespace and nothing else. The socket (SOCK_SEQPACKET, both ends of the same build) carries
 * one request and one reply of fixed sizes, and at the end a request for the counters of the devices. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Waits at options.lend_outside for one mpshell, makes its outside devices, and returns when that mpshell has ended.
 * False with a sentence in error. */
bool mp_outside_lend(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Asks the mpshell at options.outside for the devices; fills in names, addresses and outside descriptors of the paths.
 * Waits up to 15 s for the other side. False with a sentence in error. */
bool mp_outside_borrow(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Reads the drops of the outside devices into the paths. */
void mp_outside_count_drops(mp_shell *shell);
