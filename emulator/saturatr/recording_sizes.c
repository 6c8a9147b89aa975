/* The files of a recording of single packets. */
#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/saturatr/recording_files.h"
#include "emulator/saturatr/sizes.h"

#define STEP_BYTES 100u /* step between lines of the file that links read */

static sat_size_figures figures_of(sat_latencies *latencies) {
    const sat_sizes *sizes = latencies->sizes;
    sat_size_figures f = {.sent = latencies->sent - latencies->outside, .left_out = latencies->left_out};
    f.lost = f.sent - f.left_out;
    for (uint32_t s = 0; s < sizes->count; s++) {
        double delay_us = 0;
        if (!sat_latencies_median(latencies, s, &delay_us) && f.missing_bytes == 0)
            f.missing_bytes = sizes->bytes[s];
        f.arrived[s] = latencies->arrived[s];
        f.lost -= latencies->arrived[s];
        f.median_ms[s] = delay_us / 1000.0;
    }
    return f;
}

static void take(void *user, const sat_axis *axis, const sat_arrival *arrival) {
    if (arrival->kind == SAT_KIND_DATA)
        sat_latencies_add(user, arrival->seq, arrival->ip_bytes, sat_axis_sent(axis, arrival),
                          sat_axis_received(axis, arrival));
}

/* Writes a line for each 100 bytes, up to the first value at or above the largest size. */
static void write_table(FILE *table, sat_latencies *latencies) {
    const uint32_t largest = latencies->sizes->bytes[latencies->sizes->count - 1];
    for (uint32_t bytes = STEP_BYTES; bytes < largest + STEP_BYTES; bytes += STEP_BYTES)
        fprintf(table, "%" PRIu32 " %.3f\n", bytes, sat_latencies_at(latencies, bytes) / 1000.0);
}

bool sat_sizes_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error) {
    const sat_recording *r = axis->recording;
    sat_files files;
    sat_latencies latencies;
    bool ok = sat_files_create(&files, axis, k, ".sizes.csv", ".sizes", error) &&
              (sat_latencies_init(&latencies, &r->options->sizes, direction->sent, r->duration_us) ||
               error_set(error, SAT_ERROR_SIZE, "no memory to write the recording"));
    if (ok) {
        sat_files_write_raw(&files, axis, direction->records, take, &latencies);
        direction->sizes = figures_of(&latencies);
        if (direction->sizes.missing_bytes == 0)
            write_table(files.made.stream, &latencies);
        sat_latencies_free(&latencies);
    }
    ok = sat_files_finish(&files, ok, error);
    if (ok && direction->sizes.missing_bytes != 0)
        unlink(files.made.path); /* rather no latencies than those of some sizes */
    return ok;
}
