/* mpshell --probe: how late timers fire on this machine now. */
#pragma once

#include "emulator/mpshell/shell.h"

/* Measures for options.probe_ms with the cores kept awake as for a run, and prints one line of JSON: "duration_s",
 * "timers" (mp_timers_report), "machine" (of the summary), "slot_ms", "late_us" (of each slot, the largest lateness).
 * False with a sentence in error. */
bool mp_probe(mp_shell *shell, char error[MP_ERROR_SIZE]);
