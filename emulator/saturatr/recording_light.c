/* The files of a light recording. */
#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/saturatr/light.h"
#include "emulator/saturatr/recording_files.h"

static void write_row(void *user, const sat_light_row *row) {
    FILE *trace = user;
    fprintf(trace, "%" PRIu32 " %" PRIu32, row->at_ms, row->delay_ms);
    for (uint32_t i = 0; i < row->count; i++)
        fprintf(trace, " %" PRIu32, row->offsets_ms[i]);
    putc('\n', trace);
}

static sat_light_figures figures_of(const sat_light *light, uint64_t every_us) {
    sat_light_figures f = {.trains = light->trains,
                           .rows = light->rows,
                           .lost_trains = sat_light_lost_trains(light),
                           .lost_packets = sat_light_lost_packets(light),
                           .late_packets = light->late,
                           .negative_delays = light->negative_delays,
                           .left_out = light->left_out};
    double spacing_us = 0;
    if (light->rows > 0) {
        f.least_delay_ms = (double)light->least_delay_us / 1000.0;
        f.mean_delay_ms = light->delay_sum_us / (double)light->rows / 1000.0;
        f.train_ms = light->last_offset_sum_us / (double)light->rows / 1000.0;
        f.pause_ms = (double)every_us / 1000.0 - f.train_ms;
    }
    f.has_heavy = sat_light_heavy(light, &spacing_us, &f.heavy_from);
    f.heavy_from++;
    f.spacing_ms = spacing_us / 1000.0;
    return f;
}

static void take(void *user, const sat_axis *axis, const sat_arrival *arrival) {
    if (arrival->kind == SAT_KIND_DATA)
        sat_light_add(user, arrival->seq, sat_axis_sent(axis, arrival), sat_axis_received(axis, arrival));
}

bool sat_light_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error) {
    const sat_recording *r = axis->recording;
    sat_files files;
    sat_light light;
    bool ok = sat_files_create(&files, axis, k, ".light.csv", ".light", error) &&
              (sat_light_init(&light, r->options->train_packets, direction->sent, r->duration_us, write_row,
                              files.made.stream) ||
               error_set(error, SAT_ERROR_SIZE, "no memory to write the recording"));
    if (ok) {
        sat_files_write_raw(&files, axis, direction->records, take, &light);
        sat_light_finish(&light);
        direction->light = figures_of(&light, r->options->every_us);
        /* The last line is the period; up to it the last delay holds. */
        fprintf(files.made.stream, "%" PRIu64 " %" PRIu32 "\n", r->duration_us / 1000, light.last_delay_ms);
        sat_light_free(&light);
    }
    ok = sat_files_finish(&files, ok, error);
    if (ok && direction->light.rows == 0)
        unlink(files.made.path); /* rather no trace than one without a row */
    return ok;
}
