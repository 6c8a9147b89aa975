/* The command line of mpshell. */
#ifndef RAILYARD_MPSHELL_COMMAND_LINE_H
#define RAILYARD_MPSHELL_COMMAND_LINE_H

#include "emulator/mpshell/options.h"

/* False with one sentence in error. Strings of argv are pointed to. mp_options_free() in either case. */
bool mp_options_parse(mp_options *options, int argc, char **argv, char *error, size_t error_size);
/* Prints --help. */
void mp_options_print_usage(void);

#endif
