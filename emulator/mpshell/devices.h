/* Shared by inside and outside devices: sysctls, and scripts for ip(8) and tc(8). */
#pragma once

#include "emulator/mpshell/run.h"
#include "emulator/mpshell/shell.h"

extern char *const mp_ip_batch[]; /* command for mp_run() that reads a script of ip(8) */

/* Writes a sysctl. name: its path below /proc/sys. False if the kernel does not have it or refuses. */
bool mp_sysctl_write(const char *value, const char *name);
/* The same, but also true if the sysctl already has the value: in a container /proc/sys is read-only. */
bool mp_sysctl_need(const char *value, const char *name);
/* Turns on IPv6 without router solicitations and multicast reports, which would use up opportunities. False with a
 * sentence in error. */
bool mp_device_quieten_ipv6(const char *device, char error[MP_ERROR_SIZE]);
/* Adds to a script for mp_ip_batch the lines that set a device up with its addresses; address6 may be empty. */
void mp_device_script(mp_script *script, const char *device, const char *address, const char *address6);
/* Makes 100.64.N.0 of 100.64.N.x; x has one digit. */
void mp_network_of(const char *address, char network[MP_ADDRESS_SIZE]);
/* Removes the queueing disciplines of devices. False with a sentence in error. */
bool mp_devices_remove_qdiscs(const char *const devices[], size_t count, char error[MP_ERROR_SIZE]);
/* Adds to a script for mp_ip_batch the limits of MPTCP's path manager: the options, but at most the number of paths and
 * the kernel's own limit. */
void mp_allow_subflows(const mp_shell *shell, mp_script *script);
