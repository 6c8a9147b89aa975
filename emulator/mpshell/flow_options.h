/* Options of the TCP flows beside COMMAND: --flow NAME:KEY=VALUE,... */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "emulator/mpshell/options.h"

/* The settings of a flow: rows over mp_flow_options. */
extern const setting mp_flow_rows[];

/* Adds a flow with defaults. NULL with one sentence in error if the name is invalid or taken, or there are too many. */
mp_flow_options *mp_flow_add(mp_options *options, const char *name, size_t length, char *error, size_t error_size);
/* Sets one key. `value` must live as long as the options. False with one sentence in error. */
bool mp_flow_set(mp_flow_options *flow, const char *key, const char *value, char *error, size_t error_size);
/* Parses the text of --flow. False with one sentence in error. */
bool mp_flow_parse(mp_options *options, const char *text, char *error, size_t error_size);
/* Checks the flows once all paths are known, and adds a path after COMMAND's for each flow with its own link. False
 * with one sentence in error. */
bool mp_flows_place(mp_options *options, char *error, size_t error_size);
