/* The command line of mpshell. */
#pragma once

#include "emulator/mpshell/options.h"

/* Keeps pointers into argv. False with one sentence in error. Call mp_options_free() in any case. */
bool mp_options_parse(mp_options *options, int argc, char **argv, char *error, size_t error_size);
/* Prints --help. */
void mp_options_print_usage(void);
