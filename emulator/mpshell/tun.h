/* TUN devices. They are not persistent: they vanish with their descriptor, also when mpshell is killed. */
#pragma once

#include <stdbool.h>

#include "emulator/mpshell/shell.h"

/* Makes a device in the current network namespace. Returns a non-blocking descriptor; each read or write is a struct
 * virtio_net_hdr and one IP packet, or a super-packet (offload.h) if the kernel supports that. Returns -1 with a
 * sentence in error; *busy: the name is taken. Without offload the kernel makes every packet itself. */
int mp_tun_open(const char *name, bool offload, bool *busy, char error[MP_ERROR_SIZE]);
/* Returns the drops of a device of the current namespace so far. */
mp_device_drops mp_tun_drops(const char *name);
