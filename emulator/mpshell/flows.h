/* Connections of the kernel's TCP beside COMMAND's traffic: a thread of mpshell has both of their ends, one inside and
 * one outside. */
#ifndef RAILYARD_MPSHELL_FLOWS_H
#define RAILYARD_MPSHELL_FLOWS_H

#include <jansson.h>

#include "emulator/mpshell/shell.h"

/* Makes shell->flows for the flows of the options, if there are any, and starts the thread. False with a sentence. */
bool mp_flows_start(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* t0 is known: times count from here. */
void mp_flows_begin(mp_flows *flows, uint64_t t0_us);
/* Closes all connections. */
void mp_flows_stop(mp_flows *flows);
/* What they carried over time, as JSON Lines (docs/reference/results.md). False with errno set. */
bool mp_flows_write(const mp_flows *flows, const mp_result *file);
/* An array with an object for each flow: name, cc, direction, path, received_bytes, connections, failures. */
json_t *mp_flows_report(const mp_flows *flows);
void mp_flows_free(mp_flows *flows); /* NULL is fine in all of these */

#endif
