/* Packets between the devices and the links. */
#pragma once

#include "emulator/mpshell/shell.h"

typedef enum { MP_READ_ONE, MP_READ_EMPTY, MP_READ_GONE } mp_read_result;

/* Reads one packet or super-packet from the direction's device into its link. *now: time of the read (us since t0).
 * MP_READ_GONE: the device was deleted. */
mp_read_result mp_traffic_read(mp_shell *shell, mp_direction *direction, uint64_t *now);
/* Moves packets that are due at now (us since t0) to the next link of their route, or sends them to their device. A
 * packet that the device rejects (for example because COMMAND set it down) is lost and counted. */
void mp_traffic_send_due(mp_shell *shell, mp_direction *direction, uint64_t now);
