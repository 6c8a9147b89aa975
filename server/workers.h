/* The parent of several worker processes. It opens the sockets, one UDP socket for each worker, and keeps them open as
 * long as it lives: a worker that died is replaced by a process with the same socket, so that the kernel's choice never
 * changes and what arrives in between waits. It serves nothing itself. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "server/process.h"

/* Runs the workers until told to end. Returns the exit status; the totals of all workers are added up in *totals, and
 * *by_worker, a JSON array, gets an object for each. */
int workers_run(server *, server_totals *totals, json_t *by_worker);

#endif
