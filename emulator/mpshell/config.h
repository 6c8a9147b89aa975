/* The configuration file of mpshell: the options of the command line in YAML 1.1, of which JSON is a subset
 * (docs/reference/mpshell.md). */
#pragma once

#include "emulator/mpshell/options.h"

/* Sets the options of the file. False with one sentence in error that names file and line. Does not check that paths
 * are complete, because the command line may add to them. */
bool mp_config_read(mp_options *options, const char *file, char *error, size_t error_size);
