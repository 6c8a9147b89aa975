/* The files of a recording of single packets. */
#include <inttypes.h>

#include "emulator/saturatr/recording_files.h"
#include "emulator/saturatr/sizes.h"

#define STEP_BYTES 100u /* step between lines of the file that links read */

/* Writes the figures of a direction of path k, and its line of the summary. */
static void describe(sat_latencies *latencies, const sat_axis *axis, size_t k, sat_direction *direction) {
    const sat_sizes *sizes = latencies->sizes;
    const char *name = axis->recording->options->paths[k].name, *way = axis->up ? "up" : "down";
    const uint64_t sent = latencies->sent - latencies->outside;
    uint64_t lost = sent - latencies->left_out;
    for (uint32_t s = 0; s < sizes->count; s++)
        lost -= latencies->arrived[s];
    FILE *summary = axis->recording->summary;
    fprintf(summary, "%" PRIu64 " packets, %" PRIu64 " lost; median one-way delays:", sent, lost);
    json_t *by_size = json_array();
    for (uint32_t s = 0; s < sizes->count; s++) {
        double delay_us = 0;
        const bool some = sat_latencies_median(latencies, s, &delay_us);
        const double delay_ms = delay_us / 1000.0;
        if (some)
            fprintf(summary, "%s %.1f ms (%" PRIu32 " bytes)", s == 0 ? "" : ",", delay_ms, sizes->bytes[s]);
        else if (direction->missing[0] == '\0')
            snprintf(direction->missing, sizeof direction->missing,
                     "no packet of %" PRIu32 " bytes of %s %s arrived; its latencies are missing", sizes->bytes[s],
                     name, way);
        json_array_append_new(by_size, json_pack("{s:I, s:I, s:o}", "ip_bytes", (json_int_t)sizes->bytes[s], "packets",
                                                 (json_int_t)latencies->arrived[s], "median_delay_ms",
                                                 some ? json_real(delay_ms) : json_null()));
    }
    direction->figures = json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:b}", "latencies",
                                   direction->missing[0] == '\0' ? json_sprintf("%s.%s.sizes", name, way) : json_null(),
                                   "raw", json_sprintf("%s.%s.sizes.csv", name, way), "packets", (json_int_t)sent,
                                   "lost_packets", (json_int_t)lost, "left_out", (json_int_t)latencies->left_out,
                                   "by_size", by_size, "incomplete", (int)direction->incomplete);
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

bool sat_sizes_write(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction) {
    const sat_recording *r = axis->recording;
    sat_latencies latencies;
    if (!sat_latencies_init(&latencies, &r->options->sizes, direction->sent, r->duration_us))
        return false;
    sat_files_write_raw(files, axis, direction->records, take, &latencies);
    describe(&latencies, axis, k, direction);
    if (direction->missing[0] == '\0')
        write_table(files->made.stream, &latencies);
    sat_latencies_free(&latencies);
    return true;
}
