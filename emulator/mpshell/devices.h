/* What the devices of the inside and of the outside have in common: sysctls, and scripts for ip(8) and tc(8). */
#ifndef RAILYARD_MPSHELL_DEVICES_H
#define RAILYARD_MPSHELL_DEVICES_H

#include "emulator/mpshell/run.h"
#include "emulator/mpshell/shell.h"

extern char *const mp_ip_batch[]; /* the command of mp_run() that takes scripts of ip(8) */

/* Writes a sysctl; names are paths below /proc/sys. Kernels without that switch do not need it. */
bool mp_sysctl_write(const char *value, const char *name);
/* The same, or the sysctl has that value already: in a container /proc/sys is read-only. */
bool mp_sysctl_need(const char *value, const char *name);
/* IPv6 without its talk: router solicitations and multicast reports would use up opportunities. False with a
 * sentence in error. */
bool mp_device_quieten_ipv6(const char *device, char error[MP_ERROR_SIZE]);
/* Adds to a script for mp_ip_batch what sets a device up with its addresses; address6 may be empty. */
void mp_device_script(mp_script *script, const char *device, const char *address, const char *address6);
/* 100.64.N.0 of 100.64.N.x. */
void mp_network_of(const char *address, char network[MP_ADDRESS_SIZE]);
/* Devices without a queueing discipline. False with a sentence in error. */
bool mp_devices_remove_qdiscs(const char *const devices[], size_t count, char error[MP_ERROR_SIZE]);
/* Adds to a script for mp_ip_batch what lets MPTCP make a subflow a path; returns the limit. */
void mp_allow_subflows(const mp_shell *shell, mp_script *script);

#endif
