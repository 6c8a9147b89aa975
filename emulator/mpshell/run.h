/* Runs the programs that configure the namespaces: iproute2's, and iptables. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Lines for the standard input of a program. */
typedef struct {
    char text[65536];
    size_t used;
} mp_script;

__attribute__((format(printf, 2, 3))) void mp_script_add(mp_script *script, const char *format, ...);

/* Runs argv (found in PATH) in the current namespaces, with input on its standard input. True if it exits with 0;
 * otherwise false with a sentence in error, which quotes the program's output. */
bool mp_run(char *const argv[], const mp_script *input, char error[MP_ERROR_SIZE]);
