#include "emulator/link/light.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DELAY_MS ((uint64_t)LINK_MS_MOST)
#define MS_US         1000u
#define SIZE_STEP     100u
#define MOST_SIZES    1000u

/* ---- files ---- */

/* Takes the next field of a line and the space after it. False at the end of the line. */
static bool next_field(const char **line, size_t *left, const char **field, size_t *length) {
    if (*left == 0)
        return false;
    const char *space = memchr(*line, ' ', *left);
    *field = *line;
    *length = space ? (size_t)(space - *line) : *left;
    size_t taken = *length + (space ? 1 : 0);
    *line += taken;
    *left -= taken;
    return true;
}

static const char *add_offset(link_light_trace *trace, const char *field, size_t length) {
    uint64_t ms;
    if (!number_parse(field, length, &ms) || ms > MOST_DELAY_MS)
        return "the line has an offset that is not a whole number of ms (0 to 3600000)";
    uint64_t *larger = link_text_grown(trace->offsets_us, trace->offsets, sizeof *larger);
    if (!larger)
        return link_text_no_memory;
    trace->offsets_us = larger;
    larger[trace->offsets++] = ms * 1000;
    return NULL;
}

static const char *add_row(void *into, const char *line, size_t left) {
    link_light_trace *trace = into;
    link_light_row row = {.first = trace->offsets};
    const char *field, *problem = NULL;
    size_t length;
    uint64_t at_ms, delay_ms;
    if (!next_field(&line, &left, &field, &length) || !number_parse(field, length, &at_ms) || at_ms > UINT32_MAX ||
        !next_field(&line, &left, &field, &length) || !number_parse(field, length, &delay_ms) ||
        delay_ms > MOST_DELAY_MS)
        return "the line is not \"ms delay_ms offset_ms ...\"; write whole numbers, separated by a space";
    row.at_us = at_ms * 1000;
    row.delay_us = delay_ms * 1000;
    if (trace->count > 0 && row.at_us < trace->rows[trace->count - 1].at_us)
        return "the line comes before the one above it; times must not descend, sort the trace";
    while (!problem && next_field(&line, &left, &field, &length))
        problem = add_offset(trace, field, length);
    row.count = trace->offsets - row.first;
    link_light_row *larger = problem ? NULL : link_text_grown(trace->rows, trace->count, sizeof *larger);
    if (!larger)
        return problem ? problem : link_text_no_memory;
    trace->rows = larger;
    larger[trace->count++] = row;
    return NULL;
}

static const char *check_period(const void *into) {
    const link_light_trace *trace = into;
    return trace->count > 1 && trace->rows[trace->count - 1].at_us == 0
               ? "the last time is 0; it is the period of the trace, at least 1"
               : NULL;
}

const link_text_form link_light_trace_form = {
    sizeof(link_light_trace), add_row, link_light_trace_free,
    "the light trace is empty; it needs at least one line \"ms delay_ms offset_ms ...\"", check_period};

static const char *add_size(void *into, const char *line, size_t left) {
    link_size_latency *latency = into;
    const char *field;
    size_t length;
    uint64_t bytes, us;
    bool good = latency->count < MOST_SIZES && next_field(&line, &left, &field, &length) &&
                number_parse(field, length, &bytes) && bytes == SIZE_STEP * (latency->count + 1) &&
                next_field(&line, &left, &field, &length) && left == 0;
    bool negative = good && length > 0 && field[0] == '-';
    if (!good || !number_parse_ms(field + negative, length - negative, LINK_MS_MOST, &us))
        return "the line is not \"bytes ms\"; write the sizes 100, 200, 300 and so on, and the latency of each";
    double *larger = link_text_grown(latency->ms, latency->count, sizeof *larger);
    if (!larger)
        return link_text_no_memory;
    latency->ms = larger;
    larger[latency->count++] = (negative ? -1.0 : 1.0) * (double)us / 1000.0;
    return NULL;
}

const link_text_form link_size_latency_form = {sizeof(link_size_latency), add_size, link_size_latency_free,
                                               "the file is empty; it needs at least one line \"bytes ms\"", NULL};

void link_light_trace_free(void *trace) {
    link_light_trace *t = trace;
    free(t->rows);
    free(t->offsets_us);
    *t = (link_light_trace){0};
}

void link_size_latency_free(void *latency) {
    link_size_latency *l = latency;
    free(l->ms);
    *l = (link_size_latency){0};
}

/* ---- delays ---- */

static float as_ms(uint64_t us) {
    return (float)((double)us / 1000.0);
}

/* Interpolates the delay at t_us between this row and the next. Cut to whole ms, and in single precision as in
 * CellReplay, so that both agree if the result is near a whole number. */
static uint64_t interpolate(const link_light_row *row, uint64_t t_us) {
    const link_light_row *next = row + 1;
    float share = as_ms(t_us - row->at_us) / as_ms(next->at_us - row->at_us);
    float change = share * (as_ms(next->delay_us) - as_ms(row->delay_us));
    float delay = as_ms(row->delay_us) + change;
    return (uint64_t)delay * 1000;
}

uint64_t link_light_delay_at(const link_light_trace *trace, uint64_t t_us, size_t *row) {
    size_t low = 0, high = trace->count - 1; /* low becomes the last row at or before t_us, except the final row */
    uint64_t period = trace->rows[high].at_us;
    if (period > 0)
        t_us %= period;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->rows[middle].at_us <= t_us)
            low = middle;
        else
            high = middle;
    }
    if (row)
        *row = low;
    bool holds = trace->count == 1 || t_us < trace->rows[low].at_us;
    return holds ? trace->rows[low].delay_us : interpolate(&trace->rows[low], t_us);
}

/* Rounded to whole ms. */
static int64_t size_latency_us(const link_size_latency *latency, uint32_t bytes) {
    size_t below = bytes / SIZE_STEP; /* number of the largest listed size that is at most `bytes` */
    double ms;
    if (below == 0)
        ms = latency->ms[0];
    else if (below >= latency->count)
        ms = latency->ms[latency->count - 1];
    else
        ms = latency->ms[below - 1] +
             (double)(bytes % SIZE_STEP) / SIZE_STEP * (latency->ms[below] - latency->ms[below - 1]);
    return (int64_t)round(ms) * 1000;
}

static void begin_burst(link_burst *b, const link_light *light, uint64_t now, uint64_t t_us, uint32_t bytes) {
    b->begun = true;
    b->begin_us = now;
    b->delay_us = link_light_delay_at(light->trace, t_us, &b->row);
    b->next = 0;
    b->left = bytes < light->opportunity_bytes ? light->opportunity_bytes - bytes : 0;
}

/* Returns NULL if the row has none. The trace may have no offsets at all. */
static const uint64_t *offsets_of(const link_light_trace *trace, const link_light_row *row) {
    return row->count > 0 ? trace->offsets_us + row->first : NULL;
}

/* Takes the packet's bytes from the row's opportunities at past_us or later. False: they are used up. A packet larger
 * than an opportunity takes one whole opportunity. */
static bool take_offset(link_burst *b, const link_light *light, uint64_t past_us, uint32_t bytes) {
    const link_light_row *row = &light->trace->rows[b->row];
    const uint64_t *offsets = offsets_of(light->trace, row);
    uint32_t wanted = bytes < light->opportunity_bytes ? bytes : light->opportunity_bytes;
    for (; b->next < row->count && offsets[b->next] < past_us; b->next++)
        b->left = light->opportunity_bytes;
    if (b->left < wanted) {
        b->next++;
        b->left = light->opportunity_bytes;
    }
    b->left -= wanted;
    return b->next < row->count;
}

uint64_t link_burst_next(link_burst *b, const link_light *light, uint64_t now, uint64_t t_us, uint32_t bytes,
                         bool *direct) {
    uint64_t leaves;
    *direct = true;
    if (!b->begun || now + b->delay_us >= b->last_us + light->gap_us + MS_US) {
        begin_burst(b, light, now, t_us, bytes);
        leaves = now + b->delay_us;
    } else {
        const link_light_row *row = &light->trace->rows[b->row];
        const uint64_t *offsets = offsets_of(light->trace, row);
        *direct = take_offset(b, light, (now - b->begin_us) / MS_US * MS_US, bytes);
        uint64_t last = row->count > 0 ? offsets[row->count - 1] : 0;
        leaves =
            *direct ? b->begin_us + b->delay_us + offsets[b->next] : now + (last > b->delay_us ? last : b->delay_us);
    }
    b->last_us = leaves;
    int64_t exact = (int64_t)leaves, more = light->size ? size_latency_us(light->size, bytes) : 0;
    if (exact + more >= b->end_us)
        exact += more;
    if (exact < b->end_us) {
        exact = b->end_us;
        *direct = false;
    }
    b->end_us = exact;
    return exact > (int64_t)now ? (uint64_t)exact : now;
}
