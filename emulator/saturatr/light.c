#include "emulator/saturatr/light.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAT_MISSING  INT64_MIN
#define MOST_US      INT64_C(3600000000) /* largest delay or offset that links accept */
#define LIKE_HEAVY   0.1
#define SLOT(number) ((number) % SAT_OPEN_TRAINS)

/* Wraps, because a hostile peer may send any times. */
static int64_t minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Rounds to the nearest ms; us is from 0 to MOST_US. */
static uint32_t whole_ms(int64_t us) {
    return (uint32_t)((us + 500) / 1000);
}

static void clear(const sat_light *light, sat_open_train *train) {
    train->arrived = 0;
    for (uint32_t i = 0; i < light->packets; i++)
        train->received_us[i] = SAT_MISSING;
}

bool sat_light_init(sat_light *light, uint32_t packets, uint64_t sent, uint64_t duration_us, sat_light_on_row *on_row,
                    void *user) {
    memset(light, 0, sizeof *light);
    light->packets = packets;
    light->duration_us = duration_us;
    light->trains = light->trains_end = sent / packets + (sent % packets > 0);
    light->on_row = on_row;
    light->user = user;
    light->least_delay_us = INT64_MAX;
    light->offsets_ms = calloc(packets, sizeof *light->offsets_ms);
    light->places = calloc(packets, sizeof *light->places);
    bool ok = light->offsets_ms && light->places;
    for (size_t i = 0; i < SAT_OPEN_TRAINS && ok; i++) {
        light->open[i].received_us = calloc(packets, sizeof *light->open[i].received_us);
        ok = light->open[i].received_us;
        if (ok)
            clear(light, &light->open[i]);
    }
    if (!ok)
        sat_light_free(light);
    return ok;
}

void sat_light_free(sat_light *light) {
    for (size_t i = 0; i < SAT_OPEN_TRAINS; i++)
        free(light->open[i].received_us);
    free(light->offsets_ms);
    free(light->places);
    memset(light, 0, sizeof *light);
}

static int compare(const void *a, const void *b) {
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Computes the offsets of a row and returns their number. A packet that overtook the first one has the offset 0. */
static uint32_t take_offsets(sat_light *light, const sat_open_train *train) {
    uint32_t count = 0;
    int64_t last = 0;
    for (uint32_t i = 0; i < light->packets; i++) {
        if (train->received_us[i] == SAT_MISSING)
            continue;
        int64_t offset = minus(train->received_us[i], train->received_us[0]);
        offset = offset < 0 ? 0 : offset;
        if (offset > MOST_US)
            continue;
        light->places[i].offset_sum_us += (double)offset;
        light->places[i].count++;
        light->offsets_ms[count++] = whole_ms(offset);
        last = offset > last ? offset : last;
    }
    light->last_offset_sum_us += (double)last;
    qsort(light->offsets_ms, count, sizeof *light->offsets_ms, compare);
    return count;
}

static void make_row(sat_light *light, const sat_open_train *train) {
    int64_t delay = minus(train->received_us[0], train->sent_us);
    uint64_t at_ms = (uint64_t)train->sent_us / 1000;
    if (delay > MOST_US || delay < -MOST_US || at_ms < light->next_ms) {
        light->left_out++;
        return;
    }
    light->negative_delays += delay < 0;
    light->least_delay_us = delay < light->least_delay_us ? delay : light->least_delay_us;
    light->delay_sum_us += (double)delay;
    light->last_delay_ms = delay < 0 ? 0 : whole_ms(delay);
    light->next_ms = at_ms + 1;
    light->rows++;
    const sat_light_row row = {.at_ms = (uint32_t)at_ms,
                               .delay_ms = light->last_delay_ms,
                               .count = take_offsets(light, train),
                               .offsets_ms = light->offsets_ms};
    light->on_row(light->user, &row);
}

static void close_train(sat_light *light, sat_open_train *train) {
    if (train->arrived == 0)
        return;
    if (train->sent_us < 0 || (uint64_t)train->sent_us >= light->duration_us) {
        light->trains--;
    } else {
        light->arrived += train->arrived;
        if (train->received_us[0] != SAT_MISSING)
            make_row(light, train);
    }
    clear(light, train);
}

/* Closes trains to make room for train `number`, which is not before the oldest open one. */
static void open_until(sat_light *light, uint64_t number) {
    if (number - light->first_open < SAT_OPEN_TRAINS)
        return;
    uint64_t first = number - SAT_OPEN_TRAINS + 1;
    uint64_t count = first - light->first_open;
    for (uint64_t i = 0; i < count && i < SAT_OPEN_TRAINS; i++)
        close_train(light, &light->open[SLOT(light->first_open + i)]);
    light->first_open = first;
}

void sat_light_add(sat_light *light, uint64_t seq, int64_t sent_us, int64_t received_us) {
    uint64_t number = seq / light->packets;
    uint32_t place = (uint32_t)(seq % light->packets);
    if (number >= light->trains_end || received_us == SAT_MISSING)
        return; /* the sender did not send it */
    if (number < light->first_open) {
        light->late++;
        return;
    }
    open_until(light, number);
    sat_open_train *train = &light->open[SLOT(number)];
    if (train->received_us[place] != SAT_MISSING)
        return; /* a copy */
    if (train->arrived++ == 0 || place == 0)
        train->sent_us = sent_us;
    train->received_us[place] = received_us;
}

void sat_light_finish(sat_light *light) {
    for (uint64_t i = 0; i < SAT_OPEN_TRAINS; i++)
        close_train(light, &light->open[SLOT(light->first_open + i)]);
}

uint64_t sat_light_lost_trains(const sat_light *light) {
    return light->trains - light->rows - light->left_out;
}

uint64_t sat_light_lost_packets(const sat_light *light) {
    return light->trains * light->packets - light->arrived;
}

static double mean_offset(const sat_light *light, uint32_t place) {
    return light->places[place].offset_sum_us / (double)light->places[place].count;
}

/* Returns the mean spacing of the next `packets` packets after packet `from`, in us. */
static double spacing_after(const sat_light *light, uint32_t from, uint32_t packets) {
    return (mean_offset(light, from + packets) - mean_offset(light, from)) / (double)packets;
}

bool sat_light_heavy(const sat_light *light, double *spacing_us, uint32_t *from) {
    for (uint32_t i = 0; i < light->packets; i++)
        if (light->places[i].count == 0)
            return false;
    if (light->packets < SAT_HEAVY_TRAINS)
        return false;
    uint32_t quarter = light->packets / 4;
    *from = light->packets - 1 - quarter;
    *spacing_us = spacing_after(light, *from, quarter);
    if (*spacing_us <= 0)
        return false;
    while (*from > 0 && fabs(spacing_after(light, *from - 1, quarter) - *spacing_us) <= LIKE_HEAVY * *spacing_us)
        (*from)--;
    return true;
}
