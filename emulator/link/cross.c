#include "emulator/link/cross.h"

#include <math.h>
#include <string.h>

#include "base/numbers.h"
#include "emulator/link/trace.h"

#define UNITS_PER_BIT 1000000 /* units of `need`, bit/s times us */

typedef enum { STREAM_GAPS = 1, STREAM_ONOFF } cross_stream;

bool link_cross_parse_rate(const char *text, uint64_t *rate_bps) {
    *rate_bps = 0;
    return strcmp(text, "off") == 0 || (link_trace_parse_rate(text, rate_bps) && *rate_bps <= LINK_CROSS_MOST_BPS);
}

/* Bytes of a packet in the link. */
static uint32_t bytes_of(const link_cross_state *state) {
    return state->set.bytes + LINK_HEADER_BYTES;
}

/* Returns the gap between two packets, in units of `need`. */
static int64_t gap(link_cross_state *state) {
    int64_t mean = (int64_t)bytes_of(state) * 8 * UNITS_PER_BIT;
    return state->set.random_gaps ? (int64_t)((double)mean * -log1p(-link_rng_uniform(&state->rng))) : mean;
}

void link_cross_init(link_cross_state *state, const link_cross *set, uint64_t seed, uint64_t offset_us,
                     uint64_t start_us) {
    *state = (link_cross_state){.set = *set, .offset_us = offset_us, .at_us = start_us, .next_us = UINT64_MAX};
    state->rng.state = link_substream(seed, STREAM_GAPS);
    if (state->set.bytes == 0)
        state->set.bytes = LINK_OPPORTUNITY_BYTES - LINK_HEADER_BYTES;
    link_onoff_init(&state->onoff, &set->onoff, link_substream(seed, STREAM_ONOFF));
    double share = link_rng_uniform(&state->rng); /* t0 is somewhere in a gap */
    state->need = (int64_t)(share * (double)gap(state));
}

/* Returns the rate at at_us. *end: when it may change. */
static uint64_t rate_now(link_cross_state *state, uint64_t *end) {
    uint64_t stays = UINT64_MAX, rate = state->set.rate_bps;
    bool is_on = link_onoff_advance(&state->onoff, state->at_us);
    if (state->set.profile)
        rate = link_steps_at(state->set.profile, state->at_us + state->offset_us, false, &stays);
    *end = state->onoff.switch_us;
    if (stays < *end - state->at_us)
        *end = state->at_us + stays;
    return is_on ? rate : 0;
}

/* Advances to t, up to which the rate is constant. Integers make many small steps equal to a large one. */
static void go_to(link_cross_state *state, uint64_t t, uint64_t rate) {
    state->need -= (int64_t)(rate * (t - state->at_us));
    state->at_us = t;
}

uint64_t link_cross_next(link_cross_state *state, uint64_t until) {
    while (state->next_us == UINT64_MAX && state->at_us <= until) {
        uint64_t end, rate = rate_now(state, &end), limit = min_u64(end, until);
        uint64_t wait = rate == 0 ? UINT64_MAX : state->need <= 0 ? 0 : ((uint64_t)state->need + rate - 1) / rate;
        if (wait <= limit - state->at_us) {
            go_to(state, state->at_us + wait, rate);
            state->next_us = state->at_us;
        } else {
            go_to(state, limit, rate);
            if (limit == until && limit < end)
                break;
        }
    }
    return state->next_us <= until ? state->next_us : UINT64_MAX;
}

void link_cross_take(link_cross_state *state) {
    state->next_us = UINT64_MAX;
    state->need += gap(state);
}

void link_cross_fill(const link_cross_state *state, link_packet *packet) {
    uint32_t length = state->set.bytes;
    const uint8_t high = (uint8_t)(length >> 8), low = (uint8_t)length, udp = (uint8_t)(length - 20);
    const uint8_t headers[LINK_CROSS_BYTES_LEAST] = {/* 192.0.2.1 to 192.0.2.2 (RFC 5737), the discard port */
                                                     0x45, 0,    high, low, 0,
                                                     0,    0x40, 0,    64,  17,
                                                     0,    0,    192,  0,   2,
                                                     1,    192,  0,    2,   2,
                                                     0,    9,    0,    9,   (uint8_t)((length - 20) >> 8),
                                                     udp,  0,    0};
    memcpy(packet->data, headers, sizeof headers);
    packet->length = length;
}
