#include "emulator/link/leo.h"

#include <string.h>

#include "base/error.h"
#include "emulator/link/rng.h"
#include "emulator/link/text.h"

#define MS              UINT64_C(1000)
#define PERIOD_LEAST_MS 100

/* Fitted to the one-way delays of LeoReplayer's example (SpaceNetLab/LeoCC, recorded over Starlink): pauses of 20 to 58
 * ms, and means of intervals within 1.2 ms of their mean. docs/reference/links.md says how well it fits. */
static const link_leo starlink = {
    .period_us = 15000 * MS, .phase_us = 12000 * MS, .step_us = 1200, .pause_us = 34 * MS};

#define FIELD(member) SETTING_FIELD(link_leo, member)
#define TIME(member)  SETTING_MS, FIELD(member), .most = LINK_MS_MOST
static const setting rows[] = {{"period", TIME(period_us)},
                               {"phase", TIME(phase_us)},
                               {"step", TIME(step_us)},
                               {"pause", TIME(pause_us)},
                               {"burst", TIME(burst_us)},
                               {"loss", SETTING_PROBABILITY, FIELD(loss)},
                               {0}};

/* Whether the longest pause and the burst end within an interval, and burst and loss go together. */
static bool is_whole(const link_leo *leo) {
    return leo->period_us >= PERIOD_LEAST_MS * MS && leo->pause_us + leo->pause_us / 2 < leo->period_us &&
           leo->burst_us < leo->period_us && (leo->loss > 0.0) == (leo->burst_us > 0);
}

bool link_leo_parse(void *leo, const char *text, char *wanted, size_t cap) {
    const bool off = strcmp(text, "off") == 0;
    const char *rest = link_text_after(text, "starlink");
    link_leo parsed = rest ? starlink : (link_leo){.period_us = starlink.period_us};
    bool given[sizeof rows / sizeof rows[0]] = {false};
    const bool good =
        off || (text[0] != '\0' && link_text_read(rows, &parsed, rest ? rest : text, given) && is_whole(&parsed));
    if (!good)
        return error_set(
            wanted, cap,
            "starlink, period=MS:phase=MS:step=MS:pause=MS:burst=MS:loss=P or some of them, both, or off; burst "
            "and loss go together, and pause and burst end within the period");
    *(link_leo *)leo = off ? (link_leo){0} : parsed;
    return true;
}

/* Returns the number of the interval at t_us. *since_us: time since it began. */
static uint64_t interval_at(const link_leo *leo, uint64_t t_us, uint64_t *since_us) {
    uint64_t shifted = t_us + leo->period_us - leo->phase_us % leo->period_us;
    *since_us = shifted % leo->period_us;
    return shifted / leo->period_us;
}

/* Returns draw 0 or 1 (`which`) of the interval, uniform in [0, 1). */
static double draw(uint64_t seed, uint64_t interval, uint64_t which) {
    return (double)(link_mix64(seed ^ link_mix64(2 * interval + which)) >> 11) * 0x1.0p-53;
}

uint64_t link_leo_delay(const link_leo *leo, uint64_t seed, uint64_t delay_us, uint64_t t_us) {
    uint64_t since, interval = interval_at(leo, t_us, &since);
    uint64_t pause = (uint64_t)((double)leo->pause_us * (0.5 + draw(seed, interval, 0)));
    uint64_t longer = (uint64_t)(draw(seed, interval, 1) * (double)(2 * leo->step_us + 1));
    uint64_t delay = delay_us + longer + (since < pause ? pause - since : 0);
    return delay > leo->step_us ? delay - leo->step_us : 0;
}

double link_leo_loss(const link_leo *leo, uint64_t t_us) {
    uint64_t since;
    (void)interval_at(leo, t_us, &since);
    return since < leo->burst_us ? leo->loss : 0.0;
}
