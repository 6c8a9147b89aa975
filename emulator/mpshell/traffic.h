/* Packets between the devices and the links. */
#ifndef RAILYARD_MPSHELL_TRAFFIC_H
#define RAILYARD_MPSHELL_TRAFFIC_H

#include "emulator/mpshell/shell.h"

typedef enum { MP_READ_ONE, MP_READ_EMPTY, MP_READ_GONE } mp_read_result;

/* Reads once from the direction's device, one packet or one super-packet, into its link, and sets *now to the time of
 * that (us since t0). MP_READ_GONE: the device was deleted. */
mp_read_result mp_traffic_read(mp_shell *shell, mp_direction *direction, uint64_t *now);
/* Hands what is due at now (us since t0) on to the next link of its route, or sends it to its device. A packet that the
 * device refuses (set down by COMMAND, for one) is lost there, and counted. */
void mp_traffic_send_due(mp_shell *shell, mp_direction *direction, uint64_t now);

#endif
