/* The parent of several worker processes. It opens the sockets, one UDP socket for each worker, and keeps them open. A
 * process that replaces a dead worker has the same socket, so the kernel's choice never changes, and datagrams that
 * arrive meanwhile wait. The parent serves nothing itself. */
#pragma once

#include "server/process.h"

/* Runs the workers until a signal ends them. Returns the exit status. Adds the totals of all workers to *totals, and an
 * object for each to the JSON array by_worker. */
int workers_run(server *, server_totals *totals, json_t *by_worker);
