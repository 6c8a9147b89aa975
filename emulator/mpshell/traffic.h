/* Packets between the devices and the links. */
#ifndef RAILYARD_MPSHELL_TRAFFIC_H
#define RAILYARD_MPSHELL_TRAFFIC_H

#include "emulator/mpshell/shell.h"

enum mp_read_result { MP_READ_ONE, MP_READ_EMPTY, MP_READ_GONE };

/* Reads once from the direction's device, one packet or one super-packet, into its link, and sets *now to the time of
 * that (us since t0). MP_READ_GONE: the device was deleted. */
enum mp_read_result mp_traffic_read(struct mp_shell *shell, struct mp_direction *direction, uint64_t *now);
/* Sends what is due at now (us since t0). A packet that the device refuses (set down by COMMAND, for one) is lost
 * there, and counted. */
void mp_traffic_send_due(struct mp_shell *shell, struct mp_direction *direction, uint64_t now);

#endif
