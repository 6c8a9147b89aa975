/* Connections of the kernel's TCP beside COMMAND's traffic. A thread of mpshell has both ends, inside and outside. */
#pragma once

#include <jansson.h>

#include "emulator/mpshell/shell.h"

/* Makes shell->flows from the options, if there are flows, and starts the thread. False with a sentence in error. */
bool mp_flows_start(mp_shell *shell, char error[MP_ERROR_SIZE]);
/* Sets t0, from which times count, and starts the flows. */
void mp_flows_begin(mp_flows *flows, uint64_t t0_us);
/* Closes all connections. */
void mp_flows_stop(mp_flows *flows);
/* Writes the bytes received over time, as JSON Lines (docs/reference/results.md), if a file is wanted. False with a
 * sentence in error. */
bool mp_flows_write(const mp_flows *flows, const mp_result *file, char error[MP_ERROR_SIZE]);
/* Returns an array with an object for each flow: name, cc, direction, path, received_bytes, connections, failures. */
json_t *mp_flows_report(const mp_flows *flows);
void mp_flows_free(mp_flows *flows); /* flows may be NULL in all of these */
