#include "emulator/link/onoff.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/text.h"

#define LEAST_US 1000u /* limits the switches in an idle time */

#define MEAN(n) SETTING_MS, SETTING_FIELD(link_onoff, us[n]), .least = LEAST_US / 1000, .most = LINK_MS_MOST
static const setting rows[] = {{"on", MEAN(0)}, {"off", MEAN(1)}, {0}};

static bool parse_means(link_onoff *onoff, const char *list) {
    bool given[sizeof rows / sizeof rows[0]] = {false};
    onoff->is_random = true;
    onoff->count = 2;
    return link_text_read(rows, onoff, list, given) && given[0] && given[1];
}

static bool parse_times(link_onoff *onoff, const char *text) {
    for (;;) {
        size_t length = strcspn(text, "/");
        if (onoff->count == LINK_ONOFF_MAX_TIMES ||
            !number_parse_ms(text, length, LINK_MS_MOST, &onoff->us[onoff->count]) ||
            onoff->us[onoff->count] < LEAST_US)
            return false;
        onoff->count++;
        if (text[length] == '\0')
            return onoff->count % 2 == 0;
        text += length + 1;
    }
}

bool link_onoff_parse(void *onoff, const char *text, char *wanted, size_t cap) {
    link_onoff parsed = {0};
    bool good = strncmp(text, "exp:", 4) == 0 ? parse_means(&parsed, text + 4) : parse_times(&parsed, text);
    if (!good)
        return error_set(wanted, cap, "exp:on=MS:off=MS, or times ON/OFF[/ON/OFF...], up to %u of 1 to 3600000 ms",
                         LINK_ONOFF_MAX_TIMES);
    *(link_onoff *)onoff = parsed;
    return true;
}

/* Returns the duration of the present phase. A random one is at least 1 us. */
static uint64_t duration(link_onoff_state *state) {
    uint64_t us = state->model.us[state->phase];
    if (!state->model.is_random)
        return us;
    double drawn = -(double)us * log1p(-link_rng_uniform(&state->rng));
    return drawn < 1.0 ? 1 : (uint64_t)drawn;
}

void link_onoff_init(link_onoff_state *state, const link_onoff *model, uint64_t seed) {
    *state = (link_onoff_state){.model = *model, .rng = {seed}};
    state->switch_us = model->count == 0 ? UINT64_MAX : duration(state);
}

void link_onoff_switch(link_onoff_state *state, uint64_t now) {
    while (now >= state->switch_us) {
        state->phase = (state->phase + 1) % state->model.count;
        state->switch_us += duration(state);
    }
}
