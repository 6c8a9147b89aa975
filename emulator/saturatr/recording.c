#include "emulator/saturatr/recording_files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/link/packet.h"
#include "emulator/saturatr/convert.h"

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
    FILE *trace;
    sat_converter converter;
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
    uint32_t count = sat_converter_add(&out->converter, received, arrival->ip_bytes, queued, &at_ms);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out->trace, "%" PRIu32 "\n", at_ms);
    if (at_ms / 1000 < out->second_count)
        out->seconds[at_ms / 1000] += count;
}

/* Writes the figures of a direction of path k, and its line of the summary. */
static void describe(const sat_converter *c, const sat_axis *axis, size_t k, sat_direction *d) {
    const sat_recording *r = axis->recording;
    const char *name = r->options->paths[k].name, *way = axis->up ? "up" : "down";
    const double us = (double)r->duration_us, mean_mbps = (double)c->bytes * 8.0 / us;
    fprintf(r->summary, "%.3f Mbps over %.1f s, %" PRIu64 " opportunities, base RTT %.1f ms", mean_mbps, us / 1e6,
            c->opportunities, r->paths[k].base_rtt_ms);
    d->figures =
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:b}", "trace",
                  json_sprintf("%s.%s", name, way), "raw", json_sprintf("%s.%s.csv", name, way), "packets",
                  (json_int_t)c->packets, "bytes", (json_int_t)c->bytes, "opportunities", (json_int_t)c->opportunities,
                  "mean_mbps", mean_mbps, "p95_mbps", d->p95_pps * LINK_OPPORTUNITY_BYTES * 8.0 / 1e6, "idle_share",
                  (double)c->idle_bins / ceil(us / SAT_IDLE_BIN_US), "lost_packets", (json_int_t)d->lost,
                  "disordered_packets", (json_int_t)d->disordered, "disordered_timestamps", (json_int_t)c->disordered,
                  "most_in_flight_packets", (json_int_t)d->most_in_flight, "incomplete", (int)d->incomplete);
}

static bool write_heavy(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction) {
    outputs out = {.trace = files->made.stream,
                   .least = least_delay(axis, direction->records),
                   .second_count = axis->recording->duration_us / 1000000u};
    out.seconds = calloc(out.second_count + 1, sizeof *out.seconds);
    if (!out.seconds)
        return false;
    sat_converter_init(&out.converter, axis->recording->duration_us);
    sat_files_write_raw(files, axis, direction->records, write_opportunities, &out);
    fprintf(out.trace, "%" PRIu32 "\n", sat_converter_finish(&out.converter));
    direction->p95_pps = percentile_95(out.seconds, out.second_count);
    describe(&out.converter, axis, k, direction);
    free(out.seconds);
    return true;
}

/* What each kind of recording makes of the arrivals. */
typedef struct {
    const char *raw, *made; /* suffixes of the files, after the name of the path and the direction */
    bool (*write)(const sat_axis *axis, size_t k, const sat_files *files, sat_direction *direction);
} kind;

static const kind heavy = {".csv", "", write_heavy}, light = {".light.csv", ".light", sat_light_write},
                  sizes = {".sizes.csv", ".sizes", sat_sizes_write};

static bool write_direction(sat_recording *r, size_t k, bool up, char *error) {
    sat_direction *direction = up ? &r->paths[k].up : &r->paths[k].down;
    const sat_axis axis = {.recording = r, .up = up};
    const kind *of = r->options->sizes.count > 0 ? &sizes : r->options->mode == SAT_LIGHT ? &light : &heavy;
    sat_files files = {0};
    if (!direction->recorded)
        return true;
    bool ok = create(&files.raw, &axis, k, of->raw, error) && create(&files.made, &axis, k, of->made, error);
    if (ok) {
        write_header(files.raw.stream, &axis, k);
        fprintf(r->summary, "%s %s: ", r->options->paths[k].name, up ? "up" : "down");
        ok = of->write(&axis, k, &files, direction) ||
             error_set(error, SAT_ERROR_SIZE, "no memory to write the recording");
        putc('\n', r->summary);
    }
    ok = finish(&files.raw, error) && ok;
    ok = finish(&files.made, error) && ok;
    if (ok && direction->missing[0] != '\0')
        unlink(files.made.path); /* rather no trace than one without a row, or latencies of some sizes */
    return ok;
}

bool sat_recording_write(sat_recording *recording, char *error) {
    recording->summary = open_memstream(&recording->summary_text, &recording->summary_length);
    bool ok = recording->summary || error_set(error, SAT_ERROR_SIZE, "no memory to write the recording");
    for (size_t k = 0; k < recording->options->path_count && ok; k++)
        ok = write_direction(recording, k, true, error) && write_direction(recording, k, false, error);
    if (recording->summary)
        fclose(recording->summary);
    return ok && sat_recording_describe(recording, error);
}

void sat_recording_free(sat_recording *recording) {
    for (size_t k = 0; k < SAT_MAX_PATHS; k++) {
        json_decref(recording->paths[k].up.figures);
        json_decref(recording->paths[k].down.figures);
    }
    free(recording->summary_text);
}
