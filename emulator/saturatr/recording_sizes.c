/* The files of a recording of packets that are sent alone. */
#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/saturatr/recording_files.h"
#include "emulator/saturatr/sizes.h"

#define STEP_BYTES 100u /* from line to line of the file, as links read it */

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

static void write_arrivals(const sat_axis *axis, const sat_records *records, sat_latencies *latencies, FILE *raw) {
    sat_cursor cursor;
    sat_arrival arrival;
    sat_cursor_init(&cursor, records);
    while (sat_cursor_next(&cursor, &arrival)) {
        sat_raw_write_arrival(raw, axis, &arrival);
        if (arrival.kind == SAT_KIND_DATA)
            sat_latencies_add(latencies, arrival.seq, arrival.ip_bytes, sat_axis_sent(axis, &arrival),
                              sat_axis_received(axis, &arrival));
    }
}

/* A line for each 100 bytes, up to the first one that is not below the largest size. */
static void write_table(FILE *table, sat_latencies *latencies) {
    const uint32_t largest = latencies->sizes->bytes[latencies->sizes->count - 1];
    for (uint32_t bytes = STEP_BYTES; bytes < largest + STEP_BYTES; bytes += STEP_BYTES)
        fprintf(table, "%" PRIu32 " %.3f\n", bytes, sat_latencies_at(latencies, bytes) / 1000.0);
}

bool sat_sizes_write_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error) {
    const sat_recording *r = axis->recording;
    sat_file raw = {.stream = NULL}, table = {.stream = NULL};
    sat_latencies latencies;
    if (!sat_file_create(&raw, axis, k, ".sizes.csv", error))
        return false;
    bool ok = sat_file_create(&table, axis, k, ".sizes", error);
    if (ok && !sat_latencies_init(&latencies, &r->options->sizes, direction->sent, r->duration_us))
        ok = error_set(error, SAT_ERROR_SIZE, "no memory to write the recording");
    else if (ok) {
        sat_raw_write_header(raw.stream, axis, k);
        write_arrivals(axis, direction->records, &latencies, raw.stream);
        direction->sizes = figures_of(&latencies);
        if (direction->sizes.missing_bytes == 0)
            write_table(table.stream, &latencies);
        sat_latencies_free(&latencies);
    }
    ok = sat_file_finish(&raw, error) && ok;
    ok = sat_file_finish(&table, error) && ok;
    if (ok && direction->sizes.missing_bytes != 0)
        unlink(table.path); /* no latencies are better than those of some sizes */
    return ok;
}
