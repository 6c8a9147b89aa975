#include "emulator/mpshell/probe.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "emulator/mpshell/summary.h"
#include "emulator/mpshell/timers.h"

#define SETTLE_US 20000u /* threads and spinners have their scheduling classes by then */

static bool print(const mp_shell *shell, const mp_timers_found *found, char error[MP_ERROR_SIZE]) {
    json_t *slots = json_array();
    for (size_t i = 0; i < found->series.count; i++)
        json_array_append_new(slots, json_integer((json_int_t)found->series.us[i]));
    json_t *object = json_pack("{s:f,s:o,s:o,s:i,s:o}", "duration_s", (double)shell->duration_us / 1e6, "timers",
                               mp_timers_report(found), "machine", mp_summary_machine(shell), "slot_ms",
                               (int)(MP_SLOT_US / 1000u), "late_us", slots);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(object);
    if (text)
        puts(text);
    free(text);
    return text || mp_fail(error, "no memory for the probe");
}

bool mp_probe(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_timers_found found;
    mp_awake_start(&shell->awake, shell->options.keep_awake);
    mp_timers *timers = mp_timers_start();
    if (!timers) {
        mp_awake_stop(&shell->awake);
        return mp_fail(error, "cannot start a thread for the probe");
    }
    clock_sleep_until(clock_us() + SETTLE_US);
    mp_machine before = mp_machine_read();
    uint64_t t0_us = clock_us();
    mp_timers_begin(timers, t0_us);
    clock_sleep_until(t0_us + shell->options.probe_ms * 1000u);
    shell->duration_us = clock_us() - t0_us;
    mp_machine after = mp_machine_read();
    mp_timers_stop(timers, &found);
    mp_awake_stop(&shell->awake);
    shell->machine = mp_machine_between(&before, &after);
    const bool good = print(shell, &found, error);
    mp_series_free(&found.series);
    return good;
}
