#include "emulator/link/radio.h"

#include <string.h>

#include "base/error.h"
#include "emulator/link/rng.h"
#include "emulator/link/text.h"

#define PAGING_STREAM 11u /* random stream; link.c uses those below */

#define TIME(member) SETTING_MS, SETTING_FIELD(link_radio, member), .most = LINK_MS_MOST
static const setting rows[] = {{"promotion", TIME(promotion_us)},
                               {"tail", TIME(tail_us)},
                               {"inactive", TIME(inactive_us)},
                               {"cycle", TIME(cycle_us)},
                               {0}};

/* Whether the times come in pairs, and those that are given are above 0. */
static bool is_whole(const link_radio *r, const bool given[]) {
    const bool sleeps = r->promotion_us > 0 && r->tail_us > 0, listens = r->inactive_us > 0 && r->cycle_us > 0;
    return (sleeps || listens) && given[0] == sleeps && given[1] == sleeps && given[2] == listens &&
           given[3] == listens;
}

static const struct {
    const char *name;
    link_radio radio;
} presets[] = {
#define ROW(name, promotion_ms, tail_ms)                                                                               \
    {name, {.promotion_us = (promotion_ms)*UINT64_C(1000), .tail_us = (tail_ms)*UINT64_C(1000)}},
    LINK_RADIO_PRESETS(ROW)
#undef ROW
};

bool link_radio_parse(void *radio, const char *text, char *wanted, size_t cap) {
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(text, presets[i].name) == 0) {
            *(link_radio *)radio = presets[i].radio;
            return true;
        }
    }
    const bool off = strcmp(text, "off") == 0;
    link_radio parsed = {0};
    bool given[sizeof rows / sizeof rows[0]] = {false};
    if (!off && (!link_text_read(rows, &parsed, text, given) || !is_whole(&parsed, given)))
        return error_set(
            wanted, cap,
            "promotion=MS:tail=MS, inactive=MS:cycle=MS, both, above 0, a preset such as lte-2012, or off");
    *(link_radio *)radio = parsed;
    return true;
}

uint64_t link_radio_wait(const link_radio *radio, uint64_t pause_us) {
    if (radio->tail_us > 0 && pause_us >= radio->tail_us)
        return radio->promotion_us;
    if (radio->cycle_us == 0 || pause_us == LINK_RADIO_NO_PACKET || pause_us < radio->inactive_us)
        return 0;
    uint64_t past = pause_us % radio->cycle_us;
    return past == 0 ? 0 : radio->cycle_us - past;
}

link_rrc link_rrc_make(const link_radio *uplink, uint64_t paging_us, uint64_t seed) {
    if (uplink->tail_us == 0 || paging_us == 0)
        return (link_rrc){.paging_us = 0};
    return (link_rrc){.paging_us = paging_us,
                      .promotion_us = uplink->promotion_us,
                      .tail_us = uplink->tail_us,
                      .phase_us = link_substream(seed, PAGING_STREAM) % paging_us,
                      .last_us = LINK_RADIO_NO_PACKET};
}

static uint64_t next_occasion(const link_rrc *rrc, uint64_t now) {
    return now <= rrc->phase_us ? rrc->phase_us
                                : now + (rrc->paging_us - (now - rrc->phase_us) % rrc->paging_us) % rrc->paging_us;
}

uint64_t link_rrc_wait(link_rrc *rrc, bool from_network, uint64_t now) {
    const bool sleeps =
        rrc->last_us == LINK_RADIO_NO_PACKET || (now >= rrc->last_us && now - rrc->last_us >= rrc->tail_us);
    const uint64_t by_itself = now + rrc->promotion_us;
    if (sleeps)
        rrc->awake_us = from_network ? next_occasion(rrc, now) + rrc->promotion_us : by_itself;
    else if (!from_network && by_itself < rrc->awake_us)
        rrc->awake_us = by_itself; /* earlier than by paging */
    rrc->last_us = now > rrc->awake_us ? now : rrc->awake_us;
    return rrc->last_us - now;
}
