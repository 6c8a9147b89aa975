#include "recovery/pacer.h"

#define TOKENS_PER_BYTE 1000000 /* rate (bytes/s) x 1 us = rate tokens */

static int64_t full(const xl_pacer *p) {
    return (int64_t)(p->burst * TOKENS_PER_BYTE);
}

static int64_t tokens_at(const xl_pacer *p, uint64_t now) {
    if (now <= p->updated)
        return p->tokens;
    uint64_t room = (uint64_t)(full(p) - p->tokens);
    uint64_t elapsed = now - p->updated;
    /* elapsed * rate may overflow, so divide first. */
    if (p->rate == 0 || elapsed > room / p->rate)
        return full(p);
    return p->tokens + (int64_t)(elapsed * p->rate);
}

static void refill(xl_pacer *p, uint64_t now) {
    p->tokens = tokens_at(p, now);
    if (now > p->updated)
        p->updated = now;
}

void xl_pacer_init(xl_pacer *p, uint64_t burst_bytes, uint64_t now) {
    *p = (xl_pacer){.burst = burst_bytes, .updated = now};
    p->tokens = full(p);
}

void xl_pacer_set_burst(xl_pacer *p, uint64_t burst_bytes, uint64_t now) {
    refill(p, now);
    p->tokens += ((int64_t)burst_bytes - (int64_t)p->burst) * TOKENS_PER_BYTE;
    p->burst = burst_bytes;
}

void xl_pacer_set_rate(xl_pacer *p, uint64_t bytes_per_second, uint64_t now) {
    refill(p, now);
    p->rate = bytes_per_second;
}

bool xl_pacer_delays(const xl_pacer *p, uint64_t now) {
    return p->rate != 0 && p->tokens <= 0 && tokens_at(p, now) <= 0; /* tokens only grow with time */
}

uint64_t xl_pacer_next(const xl_pacer *p, uint64_t now) {
    int64_t tokens = tokens_at(p, now);
    if (p->rate == 0 || tokens > 0)
        return now;
    return now + (uint64_t)-tokens / p->rate + 1;
}

void xl_pacer_sent(xl_pacer *p, uint64_t bytes, uint64_t now) {
    refill(p, now);
    if (p->rate != 0)
        p->tokens -= (int64_t)(bytes * TOKENS_PER_BYTE);
}
