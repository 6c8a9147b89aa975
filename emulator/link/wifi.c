#include "emulator/link/wifi.h"

#include <stdio.h>
#include <string.h>

#include "emulator/link/text.h"

#define MS              UINT64_C(1000)
#define MOST_MS         10000
#define AIRTIME_MOST_MS 5.484      /* aPPDUMaxTime of 802.11-2020, table 19-25 */
#define LEAST_ON_US     (100 * MS) /* time for transmissions between two suspensions */

/* 802.11-2020, tables 9-155 and 19-25 (OFDM, 20 MHz): slot 9 us, SIFS 16, DIFS = SIFS + 2 slots, CW 15 to 1023; a block
 * ACK of 32 bytes at 24 Mbps takes 20 + 3 * 4 us, the preamble of HT-mixed format with one stream 36. */
#define STANDARD                                                                                                       \
    .slot_us = 9, .sifs_us = 16, .difs_us = 34, .preamble_us = 36, .ack_us = 32, .cw_min = 15, .cw_max = 1023,         \
    .retries = 7, .frames = 32, .airtime_us = 4 * MS, .others_us = 4 * MS

/* docs/reference/links.md has the sources. */
static const struct {
    const char *name;
    link_wifi wifi;
} presets[] = {
    {"good", {STANDARD, .rate_bps = 144400000, .loss = {.bad = 1.0}}},
    {"congested", {STANDARD, .rate_bps = 65000000, .others = 2, .loss = {.p = 0.025, .r = 0.225, .bad = 1.0}}},
};

static bool take_ms(const link_text_option *o, double most, uint64_t *into) {
    return number_parse_ms(o->value, o->value_length, most, into) && *into > 0;
}

static bool take_count(const link_text_option *o, uint32_t least, uint32_t most, uint32_t *into) {
    uint64_t value;
    bool good = number_parse(o->value, o->value_length, &value) && value >= least && value <= most;
    if (good)
        *into = (uint32_t)value;
    return good;
}

static bool take_rate(const link_text_option *o, uint64_t *into) {
    double mbps;
    bool good = number_parse_real(o->value, o->value_length, (double)LINK_WIFI_RATE_MOST / 1e6, &mbps) && mbps >= 0.1;
    if (good)
        *into = (uint64_t)(mbps * 1e6 + 0.5);
    return good;
}

static bool take_probability(const link_text_option *o, double *into) {
    return number_parse_probability(o->value, o->value_length, into);
}

static bool take(link_wifi *w, const link_text_option *o) {
    return link_text_option_is(o, "rate")        ? take_rate(o, &w->rate_bps)
           : link_text_option_is(o, "others")    ? take_count(o, 0, LINK_WIFI_OTHERS_MOST, &w->others)
           : link_text_option_is(o, "busy")      ? take_ms(o, MOST_MS, &w->others_us)
           : link_text_option_is(o, "collision") ? take_probability(o, &w->collision)
           : link_text_option_is(o, "frames")    ? take_count(o, 1, LINK_WIFI_WINDOW, &w->frames)
           : link_text_option_is(o, "airtime")   ? take_ms(o, AIRTIME_MOST_MS, &w->airtime_us)
           : link_text_option_is(o, "p")         ? take_probability(o, &w->loss.p)
           : link_text_option_is(o, "r")         ? take_probability(o, &w->loss.r)
           : link_text_option_is(o, "good")      ? take_probability(o, &w->loss.good)
           : link_text_option_is(o, "bad")       ? take_probability(o, &w->loss.bad)
           : link_text_option_is(o, "retries")   ? take_count(o, 0, 255, &w->retries)
           : link_text_option_is(o, "suspend")   ? take_ms(o, MOST_MS, &w->suspend_us)
           : link_text_option_is(o, "every")     ? take_ms(o, LINK_MS_MOST, &w->every_us)
                                                 : false;
}

static const link_wifi *find_preset(const link_text_option *o) {
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (!o->value && strlen(presets[i].name) == o->key_length &&
            memcmp(presets[i].name, o->key, o->key_length) == 0)
            return &presets[i].wifi;
    return NULL;
}

static bool is_whole(const link_wifi *w) {
    return (w->suspend_us > 0) == (w->every_us > 0) &&
           (w->suspend_us == 0 || w->every_us >= w->suspend_us + LEAST_ON_US);
}

bool link_wifi_parse(void *wifi, const char *text, char *wanted, size_t cap) {
    link_wifi parsed = presets[0].wifi;
    const bool off = strcmp(text, "off") == 0;
    bool good = off || text[0] != '\0';
    link_text_option o;
    for (bool first = true; !off && good && link_text_next_option(&text, &o); first = false) {
        const link_wifi *preset = first ? find_preset(&o) : NULL;
        if (preset)
            parsed = *preset;
        else
            good = take(&parsed, &o);
    }
    if (!good || !is_whole(&parsed)) {
        snprintf(wanted, cap,
                 "good, congested or off, and KEY=VALUE after colons with the keys of docs/reference/links.md; "
                 "suspend and every go together, and leave 100 ms");
        return false;
    }
    snprintf(parsed.rate, sizeof parsed.rate, "%llubps", (unsigned long long)parsed.rate_bps);
    *(link_wifi *)wifi = off ? (link_wifi){0} : parsed;
    return true;
}
