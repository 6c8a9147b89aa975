/* The network around COMMAND: namespace, devices, addresses, routes. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Makes the inside namespace and the devices of all paths, inside and outside, with addresses and routes. The caller is
 * in the outside namespace before and after. With --outside the current namespace is the inside, and the other
 * mpshell's is the outside. False with a sentence in error. */
bool mp_netns_build(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Sets the inside interface of path k down, without addresses, routes and MPTCP endpoint, as if the system had lost it,
 * or restores it. False with a sentence in error. */
bool mp_netns_set_interface(mp_shell *shell, size_t k, bool up, char error[MP_ERROR_SIZE]);
/* Reads the drops of all devices into the paths. */
void mp_netns_count_drops(mp_shell *shell);
/* Closes every descriptor, which removes devices, namespace and addresses. */
void mp_netns_destroy(mp_shell *shell);
/* Writes /proc/net/netstat of the inside to options.netstat, if that is given. False with a sentence in error. */
bool mp_netns_write_counters(mp_shell *shell, char error[MP_ERROR_SIZE]);
