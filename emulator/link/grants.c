#include "emulator/link/grants.h"

#include <string.h>

#include "base/error.h"
#include "emulator/link/text.h"

#define MOST_FIRST_BYTES (1u << 20)

#define FIELD(member) SETTING_FIELD(link_grants, member)
#define TIME(member)  SETTING_MS, FIELD(member), .most = LINK_MS_MOST
enum { GRANT, REPORT }; /* the first rows */
static const setting rows[] = {{"grant", TIME(grant_us)},
                               {"report", TIME(report_us)},
                               {"sr", TIME(sr_us)},
                               {"idle", TIME(idle_us)},
                               {"first", SETTING_WHOLE, FIELD(first_bytes), .most = MOST_FIRST_BYTES},
                               {0}};

bool link_grants_parse(void *grants, const char *text, char *wanted, size_t cap) {
    const bool off = strcmp(text, "off") == 0;
    link_grants parsed = {.idle_us = LINK_GRANTS_IDLE_US, .first_bytes = LINK_GRANTS_FIRST_BYTES};
    bool given[sizeof rows / sizeof rows[0]] = {false};
    const bool good =
        off || (link_text_read(rows, &parsed, text, given) && parsed.sr_us > 0 && given[GRANT] && parsed.idle_us > 0);
    if (!good)
        return error_set(
            wanted, cap,
            "sr=MS:grant=MS, and further report=MS, first=BYTES and idle=MS, or off; sr and idle are above 0");
    if (!given[REPORT])
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
