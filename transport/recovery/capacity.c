#include "recovery/capacity.h"

#define TRAIN_MAX_US    128000 /* a longer train ends and a new one begins, because rates change */
#define TRAIN_MIN_US    4000   /* a shorter train measures the receiver's batches */
#define TRAIN_MIN_BYTES 8000
#define SPREAD_US       2000  /* plus 1/8 of the sending time: chance spreads acknowledgements by no more */
#define MEMORY_US       16000 /* weight of the previous rate, as time of a train */
#define BOUND_FACTOR    4     /* a path that was not filled is assumed to be this many times faster than measured */

static void begin(xl_capacity *s, uint64_t sent_at, uint64_t now) {
    s->begun_at = now;
    s->first_sent = sent_at;
    s->bytes = 0;
    s->before = s->bytes_per_s;
}

static uint64_t smoothed(const xl_capacity *s, uint64_t took_us) {
    uint64_t memory_us = s->before > 0 ? MEMORY_US : 0;
    return (s->before * memory_us + s->bytes * 1000000) / (memory_us + took_us);
}

void xl_capacity_acked(xl_capacity *s, uint64_t bytes, uint64_t sent_at, uint64_t busy_since, uint64_t now) {
    if (s->begun_at == 0 || s->first_sent < busy_since || now - s->begun_at > TRAIN_MAX_US) {
        begin(s, sent_at, now);
        return;
    }
    s->bytes += bytes;
    uint64_t took = now - s->begun_at, left_in = sent_at > s->first_sent ? sent_at - s->first_sent : 0;
    if (took < TRAIN_MIN_US || s->bytes < TRAIN_MIN_BYTES)
        return;
    uint64_t rate = s->bytes * 1000000 / took;
    if (took > left_in + left_in / 8 + SPREAD_US) {
        s->bytes_per_s = smoothed(s, took);
        s->measured_at = now;
        s->is_bound = false;
    } else if (rate > s->bytes_per_s) {
        s->bytes_per_s = rate;
        s->measured_at = now;
        s->is_bound = true;
    }
}

uint64_t xl_capacity_time(const xl_capacity *s, uint64_t bytes) {
    uint64_t rate = s->is_bound ? BOUND_FACTOR * s->bytes_per_s : s->bytes_per_s;
    return rate > 0 ? bytes * 1000000 / rate : 0;
}
