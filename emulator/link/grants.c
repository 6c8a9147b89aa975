#include "emulator/link/grants.h"

#include <stdio.h>
#include <string.h>

#include "emulator/link/text.h"

#define MOST_FIRST_BYTES (1u << 20)
#define NOT_SET          UINT64_MAX

/* Reads one option. False if it is unknown or its value is invalid. */
static bool take(link_grants *grants, const link_text_option *o) {
    uint64_t *into = link_text_option_is(o, "sr")       ? &grants->sr_us
                     : link_text_option_is(o, "grant")  ? &grants->grant_us
                     : link_text_option_is(o, "report") ? &grants->report_us
                     : link_text_option_is(o, "idle")   ? &grants->idle_us
                                                        : NULL;
    uint64_t bytes;
    if (!o->value)
        return false;
    if (into)
        return number_parse_ms(o->value, o->value_length, LINK_MS_MOST, into);
    if (!link_text_option_is(o, "first") || !number_parse(o->value, o->value_length, &bytes) ||
        bytes > MOST_FIRST_BYTES)
        return false;
    grants->first_bytes = (uint32_t)bytes;
    return true;
}

bool link_grants_parse(void *grants, const char *text, char *wanted, size_t cap) {
    const bool off = strcmp(text, "off") == 0;
    link_grants parsed = {.grant_us = NOT_SET,
                          .report_us = NOT_SET,
                          .idle_us = LINK_GRANTS_IDLE_US,
                          .first_bytes = LINK_GRANTS_FIRST_BYTES};
    bool good = off || (text[0] != '\0' && text[strlen(text) - 1] != ':');
    link_text_option o;
    while (!off && good && link_text_next_option(&text, &o))
        good = take(&parsed, &o);
    if (!off && (!good || parsed.sr_us == 0 || parsed.grant_us == NOT_SET || parsed.idle_us == 0)) {
        snprintf(wanted, cap,
                 "sr=MS:grant=MS, and further report=MS, first=BYTES and idle=MS, or off; sr and idle are above 0");
        return false;
    }
    if (parsed.report_us == NOT_SET)
        parsed.report_us = parsed.grant_us;
    *(link_grants *)grants = off ? (link_grants){0} : parsed;
    return true;
}

/* Returns the first occasion at or after t_us. */
static uint64_t next_occasion(const link_grants *grants, uint64_t phase_us, uint64_t t_us) {
    uint64_t past = (t_us + grants->sr_us - phase_us) % grants->sr_us;
    return past == 0 ? t_us : t_us + grants->sr_us - past;
}

static uint64_t leaves_at(const link_grants *grants, link_grants_state *state, uint64_t t_us, uint32_t bytes) {
    uint64_t open_us = state->first_us + grants->report_us;
    if (t_us <= state->first_us && bytes <= state->left) {
        state->left -= bytes;
        return state->first_us;
    }
    state->left = 0; /* later packets stay behind this one */
    return t_us > open_us ? t_us : open_us;
}

uint64_t link_grants_wait(const link_grants *grants, link_grants_state *state, uint64_t phase_us, uint64_t t_us,
                          uint32_t bytes) {
    state->came_us = t_us > state->came_us ? t_us : state->came_us;
    if (!state->has_begun || state->came_us > state->last_us + grants->idle_us) {
        state->has_begun = true;
        state->first_us = next_occasion(grants, phase_us, state->came_us) + grants->grant_us;
        state->left = grants->first_bytes;
    }
    state->last_us = leaves_at(grants, state, state->came_us, bytes);
    return state->last_us - t_us;
}
