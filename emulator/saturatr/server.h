/* The server of saturatr: one recording at a time, for clients that have the token. */
#pragma once

#include "emulator/saturatr/options.h"

/* Serves until wait_is_ended, or with --once until a recording is over. False with one sentence in error if it
 * cannot start. */
bool sat_server_run(const sat_options *options, char *error);
