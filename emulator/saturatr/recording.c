#include "emulator/saturatr/recording_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/packet.h"

#define FILE_BUFFER (1u << 18)

static const char *const kind_names[] = {"data", "ack", "probe"};

static int64_t session_time(const sat_axis *axis, uint64_t t, bool server_clock) {
    uint64_t client_us = server_clock ? sat_clock_to_client(&axis->recording->clock, t) : t;
    return (int64_t)(client_us - axis->recording->t0_us);
}

int64_t sat_axis_sent(const sat_axis *axis, const sat_arrival *arrival) {
    return session_time(axis, arrival->sent_us, !axis->up);
}

int64_t sat_axis_received(const sat_axis *axis, const sat_arrival *arrival) {
    return session_time(axis, arrival->received_us, axis->up);
}

/* Wraps, because a hostile server may send any times. */
static int64_t minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static bool create(sat_file *file, const sat_axis *axis, size_t k, const char *suffix, char *error) {
    const sat_options *options = axis->recording->options;
    snprintf(file->path, sizeof file->path, "%s/%s.%s%s", options->out, options->paths[k].name,
             axis->up ? "up" : "down", suffix);
    file->stream = fopen(file->path, "we");
    if (!file->stream)
        return error_set(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", file->path, strerror(errno));
    setvbuf(file->stream, NULL, _IOFBF, FILE_BUFFER);
    return true;
}

static bool finish(sat_file *file, char *error) {
    if (!file->stream)
        return true;
    bool bad = ferror(file->stream) != 0;
    bad = fclose(file->stream) != 0 || bad;
    return !bad || error_set(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", file->path, strerror(errno));
}

static void write_header(FILE *raw, const sat_axis *axis, size_t k) {
    const sat_recording *r = axis->recording;
    const sat_path_options *path = &r->options->paths[k];
    fprintf(raw, "# railyard saturatr raw log 1\n# path: %s\n# direction: %s\n# technology: %s\n", path->name,
            axis->up ? "up" : "down", path->technology);
    fprintf(raw, "# t0_epoch_us: %" PRIu64 "\n# t0_monotonic_us: %" PRIu64 "\n# duration_us: %" PRIu64 "\n",
            r->t0_epoch_us, r->t0_us, r->duration_us);
    fprintf(raw, "# clock_offset_us: %.1f\n# clock_uncertainty_us: %.1f\n", sat_clock_offset_us(&r->clock, r->t0_us),
            sat_clock_uncertainty_us(&r->clock));
    if (r->options->mode == SAT_LIGHT)
        fprintf(raw, "# train_packets: %" PRIu32 "\n# every_us: %" PRIu64 "\n", r->options->train_packets,
                r->options->every_us);
    for (uint32_t i = 0; i < r->options->sizes.count; i++)
        fprintf(raw, "%s%" PRIu32 "%s", i == 0 ? "# sizes: " : ",", r->options->sizes.bytes[i],
                i + 1 == r->options->sizes.count ? "\n" : "");
    fprintf(raw, "# packet_ip_bytes: %zu\n# opportunity_bytes: %u\nreceived_us,sent_us,seq,ip_bytes,kind\n",
            r->options->packet_bytes, LINK_OPPORTUNITY_BYTES);
}

bool sat_files_create(sat_files *files, const sat_axis *axis, size_t k, const char *raw_suffix, const char *suffix,
                      char *error) {
    *files = (sat_files){.raw.stream = NULL};
    if (!create(&files->raw, axis, k, raw_suffix, error) || !create(&files->made, axis, k, suffix, error))
        return false;
    write_header(files->raw.stream, axis, k);
    return true;
}

bool sat_files_finish(sat_files *files, bool ok, char *error) {
    ok = finish(&files->raw, error) && ok;
    return finish(&files->made, error) && ok;
}

void sat_files_write_raw(const sat_files *files, const sat_axis *axis, const sat_records *records,
                         void (*take)(void *user, const sat_axis *axis, const sat_arrival *arrival), void *user) {
    sat_cursor cursor;
    sat_arrival arrival;
    sat_cursor_init(&cursor, records);
    while (sat_cursor_next(&cursor, &arrival)) {
        fprintf(files->raw.stream, "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu32 ",%s\n",
                sat_axis_received(axis, &arrival), sat_axis_sent(axis, &arrival), arrival.seq, arrival.ip_bytes,
                kind_names[arrival.kind]);
        take(user, axis, &arrival);
    }
}

/* Returns the least one-way delay of the data packets. Delay above it is queueing. */
static int64_t least_delay(const sat_axis *axis, const sat_records *records) {
    sat_cursor cursor;
    sat_arrival arrival;
    int64_t least = INT64_MAX;
    sat_cursor_init(&cursor, records);
    while (sat_cursor_next(&cursor, &arrival)) {
        int64_t delay = minus(sat_axis_received(axis, &arrival), sat_axis_sent(axis, &arrival));
        least = arrival.kind == SAT_KIND_DATA && delay < least ? delay : least;
    }
    return least;
}

static int compare(const void *a, const void *b) {
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* By nearest rank. Sorts `seconds`. */
static double percentile_95(uint32_t *seconds, size_t count) {
    if (count == 0)
        return 0.0;
    qsort(seconds, count, sizeof *seconds, compare);
    return seconds[(count * 95 + 99) / 100 - 1];
}

typedef struct {
    sat_files files;
    sat_converter *converter;
    int64_t least;     /* delay */
    uint32_t *seconds; /* opportunities of each whole second */
    size_t second_count;
} outputs;

static void write_opportunities(void *user, const sat_axis *axis, const sat_arrival *arrival) {
    outputs *out = user;
    int64_t received = sat_axis_received(axis, arrival), sent = sat_axis_sent(axis, arrival);
    bool data = arrival->kind == SAT_KIND_DATA;
    uint64_t queued = data ? (uint64_t)minus(minus(received, sent), out->least) : SAT_IDLE_QUEUE_US;
    uint32_t at_ms = 0;
    uint32_t count = sat_converter_add(out->converter, received, arrival->ip_bytes, queued, &at_ms);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out->files.made.stream, "%" PRIu32 "\n", at_ms);
    if (at_ms / 1000 < out->second_count)
        out->seconds[at_ms / 1000] += count;
}

static bool write_heavy_direction(const sat_axis *axis, size_t k, sat_direction *direction, char *error) {
    outputs out = {.converter = &direction->converter,
                   .least = least_delay(axis, direction->records),
                   .second_count = axis->recording->duration_us / 1000000u};
    out.seconds = calloc(out.second_count + 1, sizeof *out.seconds);
    if (!out.seconds)
        return error_set(error, SAT_ERROR_SIZE, "no memory to write the recording");
    bool ok = sat_files_create(&out.files, axis, k, ".csv", "", error);
    if (ok) {
        sat_converter_init(&direction->converter, axis->recording->duration_us);
        sat_files_write_raw(&out.files, axis, direction->records, write_opportunities, &out);
        fprintf(out.files.made.stream, "%" PRIu32 "\n", sat_converter_finish(&direction->converter));
        direction->p95_pps = percentile_95(out.seconds, out.second_count);
    }
    free(out.seconds);
    return sat_files_finish(&out.files, ok, error);
}

static bool write_direction(sat_recording *r, size_t k, bool up, char *error) {
    sat_direction *direction = up ? &r->paths[k].up : &r->paths[k].down;
    const sat_axis axis = {.recording = r, .up = up};
    if (!direction->recorded)
        return true;
    return r->options->sizes.count > 0     ? sat_sizes_write_direction(&axis, k, direction, error)
           : r->options->mode == SAT_LIGHT ? sat_light_write_direction(&axis, k, direction, error)
                                           : write_heavy_direction(&axis, k, direction, error);
}

bool sat_recording_write(sat_recording *recording, char *error) {
    for (size_t k = 0; k < recording->options->path_count; k++)
        if (!write_direction(recording, k, true, error) || !write_direction(recording, k, false, error))
            return false;
    return sat_recording_describe(recording, error);
}
