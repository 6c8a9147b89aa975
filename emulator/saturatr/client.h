/* The client of saturatr: sets up and makes a recording, fetches the server's half and writes the files. */
#pragma once

#include "emulator/saturatr/options.h"

typedef enum { SAT_DONE = 0, SAT_FAILED = 1, SAT_CANNOT_START = 2 } sat_outcome;

/* Makes a recording. wait_is_ended ends it early; the part up to then is kept. One sentence in error unless
 * SAT_DONE. */
sat_outcome sat_client_run(const sat_options *options, int argc, char **argv, char *error);
