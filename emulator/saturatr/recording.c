#include "emulator/saturatr/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/link/packet.h"

#define FILE_BUFFER (1u << 18)

static const char *const kind_names[] = {"data", "ack", "probe"};

/* How a direction's times come onto the session's axis: the uplink is received by the server. */
typedef struct {
    const sat_recording *recording;
    bool up;
} recording_axis;

static int64_t session_time(const recording_axis *axis, uint64_t t, bool server_clock) {
    uint64_t client_us = server_clock ? sat_clock_to_client(&axis->recording->clock, t) : t;
    return (int64_t)(client_us - axis->recording->t0_us);
}

/* Wraps: times of a hostile server may be anything. */
static int64_t minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static FILE *create(const sat_recording *recording, const char *name, char path[PATH_MAX], char *error) {
    snprintf(path, PATH_MAX, "%s/%s", recording->options->out, name);
    FILE *stream = fopen(path, "we");
    if (!stream) {
        snprintf(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
        return NULL;
    }
    setvbuf(stream, NULL, _IOFBF, FILE_BUFFER);
    return stream;
}

static bool finish(FILE *stream, const char *path, char *error) {
    bool bad = ferror(stream) != 0;
    if (fclose(stream) != 0 || bad) {
        snprintf(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static void write_raw_header(FILE *raw, const sat_recording *r, const sat_path_options *path, bool up) {
    fprintf(raw, "# railyard saturatr raw log 1\n# path: %s\n# direction: %s\n# technology: %s\n", path->name,
            up ? "up" : "down", path->technology);
    fprintf(raw, "# t0_epoch_us: %" PRIu64 "\n# t0_monotonic_us: %" PRIu64 "\n# duration_us: %" PRIu64 "\n",
            r->t0_epoch_us, r->t0_us, r->duration_us);
    fprintf(raw, "# clock_offset_us: %.1f\n# clock_uncertainty_us: %.1f\n", sat_clock_offset_us(&r->clock, r->t0_us),
            sat_clock_uncertainty_us(&r->clock));
    fprintf(raw, "# packet_ip_bytes: %zu\n# opportunity_bytes: %u\nreceived_us,sent_us,seq,ip_bytes,kind\n",
            r->options->packet_bytes, LINK_OPPORTUNITY_BYTES);
}

/* The least one-way delay of the data packets: what is beyond it is queueing. */
static int64_t least_delay(const recording_axis *axis, const sat_records *records) {
    sat_cursor cursor;
    sat_arrival arrival;
    int64_t least = INT64_MAX;
    sat_cursor_init(&cursor, records);
    while (sat_cursor_next(&cursor, &arrival)) {
        int64_t delay =
            minus(session_time(axis, arrival.received_us, axis->up), session_time(axis, arrival.sent_us, !axis->up));
        least = arrival.kind == SAT_KIND_DATA && delay < least ? delay : least;
    }
    return least;
}

static int compare(const void *a, const void *b) {
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Nearest rank. Sorts. */
static double percentile_95(uint32_t *seconds, size_t count) {
    if (count == 0)
        return 0.0;
    qsort(seconds, count, sizeof *seconds, compare);
    return seconds[(count * 95 + 99) / 100 - 1];
}

typedef struct {
    FILE *raw, *trace;
    uint32_t *seconds; /* opportunities of each whole second */
    size_t second_count;
} outputs;

static void write_opportunities(outputs *out, uint32_t count, uint32_t at_ms) {
    for (uint32_t i = 0; i < count; i++)
        fprintf(out->trace, "%" PRIu32 "\n", at_ms);
    if (at_ms / 1000 < out->second_count)
        out->seconds[at_ms / 1000] += count;
}

static void write_arrivals(const recording_axis *axis, sat_direction *direction, outputs *out) {
    int64_t least = least_delay(axis, direction->records);
    sat_cursor cursor;
    sat_arrival arrival;
    sat_converter_init(&direction->converter, axis->recording->duration_us);
    sat_cursor_init(&cursor, direction->records);
    while (sat_cursor_next(&cursor, &arrival)) {
        int64_t received = session_time(axis, arrival.received_us, axis->up);
        int64_t sent = session_time(axis, arrival.sent_us, !axis->up);
        fprintf(out->raw, "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu32 ",%s\n", received, sent, arrival.seq,
                arrival.ip_bytes, kind_names[arrival.kind]);
        bool data = arrival.kind == SAT_KIND_DATA;
        uint64_t queued = data ? (uint64_t)minus(minus(received, sent), least) : SAT_IDLE_QUEUE_US;
        uint32_t at_ms = 0;
        uint32_t count = sat_converter_add(&direction->converter, received, arrival.ip_bytes, queued, &at_ms);
        if (count > 0)
            write_opportunities(out, count, at_ms);
    }
    fprintf(out->trace, "%" PRIu32 "\n", sat_converter_finish(&direction->converter));
    direction->p95_pps = percentile_95(out->seconds, out->second_count);
}

static bool write_direction(sat_recording *r, size_t k, bool up, char *error) {
    const sat_path_options *path = &r->options->paths[k];
    sat_direction *direction = up ? &r->paths[k].up : &r->paths[k].down;
    char names[2][SAT_NAME_SIZE + 16];
    char files[2][PATH_MAX];
    if (!direction->recorded)
        return true;
    snprintf(names[0], sizeof names[0], "%s.%s.csv", path->name, up ? "up" : "down");
    snprintf(names[1], sizeof names[1], "%s.%s", path->name, up ? "up" : "down");
    recording_axis axis = {.recording = r, .up = up};
    outputs out = {.second_count = r->duration_us / 1000000u};
    out.seconds = calloc(out.second_count + 1, sizeof *out.seconds);
    out.raw = create(r, names[0], files[0], error);
    out.trace = !out.raw ? NULL : create(r, names[1], files[1], error);
    bool ok = out.trace != NULL;
    if (!out.seconds) {
        snprintf(error, SAT_ERROR_SIZE, "no memory to write the recording");
        ok = false;
    }
    if (ok) {
        write_raw_header(out.raw, r, path, up);
        write_arrivals(&axis, direction, &out);
    }
    if (out.raw && !finish(out.raw, files[0], error))
        ok = false;
    if (out.trace && !finish(out.trace, files[1], error))
        ok = false;
    free(out.seconds);
    return ok;
}

bool sat_recording_write(sat_recording *recording, char *error) {
    for (size_t k = 0; k < recording->options->path_count; k++)
        if (!write_direction(recording, k, true, error) || !write_direction(recording, k, false, error))
            return false;
    return sat_recording_describe(recording, error);
}
