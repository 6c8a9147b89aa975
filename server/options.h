/* The command line of xlink-server. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>

#include "server/server.h"

/* False with one sentence in error. Strings of argv are pointed to. */
bool server_options_parse(int argc, char **argv, server_config *out, bool *help, char *error, size_t error_cap);
/* Reads --params FILE over what the command line said (base). False with one sentence that names file and line in
 * error, and *out is as it was. */
bool server_options_load_params(const server_config *base, server_config *out, char *error, size_t error_cap);
const char *server_options_usage(void);

#endif
