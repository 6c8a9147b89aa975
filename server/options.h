/* The command line of xlink-server. */
#pragma once

#include <stdbool.h>

#include "server/server.h"

/* False: error[SETTINGS_ERROR_BYTES] has a sentence. *out points to strings of argv. */
bool server_options_parse(int argc, char **argv, server_config *out, char *error);
/* Reads the command line of `base` again, and the file of --params, which overrides it. False: error has a sentence
 * with file and line, and *out is unchanged. */
bool server_options_load_params(const server_config *base, server_config *out, char *error);
/* Prints --help. */
void server_options_print_usage(void);
