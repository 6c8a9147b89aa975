/* The server of saturatr: one recording at a time, for clients that have the token. */
#ifndef RAILYARD_SATURATR_SERVER_H
#define RAILYARD_SATURATR_SERVER_H

#include <signal.h>

#include "emulator/saturatr/options.h"

/* Serves until *stop is set, or with --once until a recording is over. False with one sentence in error if it cannot
 * start. */
bool sat_server_run(const sat_options *options, volatile sig_atomic_t *stop, char *error);

#endif
