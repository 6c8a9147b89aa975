/* The files of a light recording. */
#include <inttypes.h>

#include "emulator/link/packet.h"
#include "emulator/saturatr/light.h"
#include "emulator/saturatr/recording_files.h"

static void write_row(void *user, const sat_light_row *row) {
    FILE *trace = user;
    fprintf(trace, "%" PRIu32 " %" PRIu32, row->at_ms, row->delay_ms);
    for (uint32_t i = 0; i < row->count; i++)
        fprintf(trace, " %" PRIu32, row->offsets_ms[i]);
    putc('\n', trace);
}

/* Writes the figures of a direction of path k, and its line of the summary. */
static void describe(const sat_light *light, const sat_axis *axis, size_t k, sat_direction *direction) {
    const sat_options *o = axis->recording->options;
    const char *name = o->paths[k].name, *way = axis->up ? "up" : "down";
    FILE *summary = axis->recording->summary;
    const bool some = light->rows > 0;
    const double rows = some ? (double)light->rows : 1.0, least_ms = (double)light->least_delay_us / 1000.0;
    const double mean_ms = light->delay_sum_us / rows / 1000.0, train_ms = light->last_offset_sum_us / rows / 1000.0;
    const double pause_ms = (double)o->every_us / 1000.0 - train_ms;
    const uint64_t lost_packets = sat_light_lost_packets(light);
    double spacing_us = 0;
    uint32_t from = 0;
    const bool is_heavy = sat_light_heavy(light, &spacing_us, &from);
    const double spacing_ms = spacing_us / 1000.0;
    fprintf(summary, "%" PRIu64 " rows of %" PRIu64 " trains, %" PRIu64 " packets lost", light->rows, light->trains,
            lost_packets);
    if (some)
        fprintf(summary, "; one-way delay %.1f ms, at least %.1f ms; trains of %.1f ms, pauses of %.1f ms", mean_ms,
                least_ms, train_ms, pause_ms);
    if (is_heavy)
        fprintf(summary, "; from packet %" PRIu32 " of %" PRIu32 " on one each %.3f ms (%.1f Mbps)", from + 1,
                o->train_packets, spacing_ms,
                (double)(o->packet_bytes + LINK_HEADER_BYTES) * 8.0 / (spacing_ms * 1000.0));
    if (!some)
        snprintf(direction->missing, sizeof direction->missing,
                 "the first packet of no train of %s %s arrived; this trace is missing", name, way);
    json_t *delays = some ? json_pack("{s:f, s:f}", "least", least_ms, "mean", mean_ms) : json_null();
    json_t *heavy =
        is_heavy ? json_pack("{s:I, s:f}", "from_packet", (json_int_t)from + 1, "spacing_ms", spacing_ms) : json_null();
    direction->figures = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b}", "trace",
        some ? json_sprintf("%s.%s.light", name, way) : json_null(), "raw", json_sprintf("%s.%s.light.csv", name, way),
        "trains", (json_int_t)light->trains, "rows", (json_int_t)light->rows, "lost_trains",
        (json_int_t)sat_light_lost_trains(light), "lost_packets", (json_int_t)lost_packets, "late_packets",
        (json_int_t)light->late, "negative_delays", (json_int_t)light->negative_delays, "left_out",
        (json_int_t)light->left_out, "delay_ms", delays, "train_ms", some ? json_real(train_ms) : json_null(),
        "pause_ms", some ? json_real(pause_ms) : json_null(), "heavy", heavy, "incomplete", (int)direction->incomplete);
}

static void take(void *user, const sat_axis *axis, const sat_arrival *arrival) {
    if (arrival->kind == SAT_KIND_DATA)
        sat_light_add(user, arrival->seq, sat_axis_sent(axis, arrival), sat_axis_received(axis, arrival));
}

bool sat_light_write(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction) {
    const sat_recording *r = axis->recording;
    sat_light light;
    if (!sat_light_init(&light, r->options->train_packets, direction->sent, r->duration_us, write_row,
                        files->made.stream))
        return false;
    sat_files_write_raw(files, axis, direction->records, take, &light);
    sat_light_finish(&light);
    describe(&light, axis, k, direction);
    /* The last line is the period; up to it the last delay holds. */
    fprintf(files->made.stream, "%" PRIu64 " %" PRIu32 "\n", r->duration_us / 1000, light.last_delay_ms);
    sat_light_free(&light);
    return true;
}
