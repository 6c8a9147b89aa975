/* A link that is alternately on and off. While it is off, packets that reach it are lost, as with mm-onoff, and queued
 * packets are still served. The times do not depend on the packets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/rng.h"

#define LINK_ONOFF_MAX_TIMES 32u

/* The first duration is on. */
typedef struct {
    bool is_random; /* times are exponentially distributed with the means us[0] (on) and us[1] (off) */
    uint32_t count; /* number of times; 0: always on */
    uint64_t us[LINK_ONOFF_MAX_TIMES]; /* durations on, off, on, off ...; an even number, repeated */
} link_onoff;

typedef struct {
    link_onoff model;
    uint32_t phase;     /* index of the present duration; even: on */
    uint64_t switch_us; /* when the present duration ends */
    link_rng rng;
} link_onoff_state;

/* Parses "exp:on=MS:off=MS" (means) or durations in ms "ON/OFF/ON/OFF..." into a link_onoff. */
bool link_onoff_parse(void *onoff, const char *text, char *wanted, size_t cap);
void link_onoff_init(link_onoff_state *state, const link_onoff *model, uint64_t seed);
void link_onoff_switch(link_onoff_state *state, uint64_t now); /* for link_onoff_advance() */
/* Advances to `now`, which must not decrease. Returns whether the link is on. */
static inline bool link_onoff_advance(link_onoff_state *state, uint64_t now) {
    if (now >= state->switch_us)
        link_onoff_switch(state, now);
    return state->phase % 2 == 0;
}
