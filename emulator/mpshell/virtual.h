/* mpshell --virtual: the same command line in a time-travel kernel. */
#pragma once

#include "emulator/mpshell/options.h"
#include "emulator/mpshell/shell.h"

/* Becomes vkernel, which is in the same folder as this program and runs it with the same arguments except --virtual.
 * Returns only on failure: false with a sentence in error. */
bool mp_virtual_become(const mp_options *options, int argc, char **argv, char error[MP_ERROR_SIZE]);
