#include "emulator/mpshell/late.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "emulator/mpshell/shell.h"

void mp_late_start(mp_late *late, pid_t init, const pid_t *watched, size_t count) {
    if (!late->wanted)
        return;
    late->timers = mp_timers_start();
    late->waits = mp_waits_start(init, watched, count);
}

void mp_late_begin(mp_late *late, uint64_t t0_us) {
    mp_timers_begin(late->timers, t0_us);
    mp_waits_begin(late->waits, t0_us);
}

void mp_late_stop(mp_late *late) {
    mp_timers_stop(late->timers, &late->timers_found);
    mp_waits_stop(late->waits, &late->waits_found);
    late->timers = NULL;
    late->waits = NULL;
}

void mp_late_record(mp_late *late, uint64_t due_us, uint64_t late_us) {
    if (late->wanted)
        mp_series_raise(&late->links, due_us, late_us);
}

bool mp_late_write(const mp_late *late, char *error) {
    const mp_series *links = &late->links;
    const mp_series *timers = &late->timers_found.series;
    const mp_series *waits = &late->waits_found.series;
    size_t count = links->count > timers->count ? links->count : timers->count;
    count = waits->count > count ? waits->count : count;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = late->wanted ? open_memstream(&text, &length) : NULL;
    if (!stream)
        return !late->wanted || mp_fail(error, "no memory for the lateness");
    fprintf(stream, "# slot_us %u; a line for each slot since t0: largest lateness of links and of timers, waits\n",
            MP_SLOT_US);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", mp_series_at(links, i), mp_series_at(timers, i),
                mp_series_at(waits, i));
    const bool good = fclose(stream) == 0 ? mp_result_write(&late->file, text, length, error)
                                          : mp_fail(error, "no memory for the lateness");
    free(text);
    return good;
}

void mp_late_free(mp_late *late) {
    mp_series_free(&late->links);
    mp_series_free(&late->timers_found.series);
    mp_series_free(&late->waits_found.series);
    mp_result_close(&late->file);
}
