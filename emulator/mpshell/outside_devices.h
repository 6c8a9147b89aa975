/* The outside part of the network: addresses and the outside devices, in the current namespace. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Chooses the addresses of path_count paths and makes their outside devices. False with a sentence in
 * error. */
bool mp_outside_build(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Releases the addresses for other mpshells. */
void mp_outside_release_addresses(mp_shell *shell);
