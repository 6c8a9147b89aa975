/* The command line of xlink-server. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>

#include "server/server.h"

/* False with one sentence in error[SETTINGS_ERROR_BYTES]. Strings of argv are pointed to. */
bool server_options_parse(int argc, char **argv, server_config *out, char *error);
/* Reads the command line of `base` again, and over it the file of --params. False with one sentence that names file and
 * line in error, and *out is as it was. */
bool server_options_load_params(const server_config *base, server_config *out, char *error);
/* Prints --help. */
void server_options_print_usage(void);

#endif
