#include "emulator/link/wifi.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/text.h"

#define MS              UINT64_C(1000)
#define MOST_MS         10000
#define AIRTIME_MOST_US 5484       /* aPPDUMaxTime of 802.11-2020, table 19-25 */
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

static bool parse_mbps(void *rate_bps, const char *text, char *wanted, size_t cap) {
    double mbps;
    if (!number_parse_real(text, strlen(text), (double)LINK_WIFI_RATE_MOST / 1e6, &mbps) || mbps < 0.1)
        return error_set(wanted, cap, "Mbps (0.1 to 10000)");
    *(uint64_t *)rate_bps = (uint64_t)(mbps * 1e6 + 0.5);
    return true;
}

#define FIELD(member)       SETTING_FIELD(link_wifi, member)
#define COUNT(member)       SETTING_WHOLE, FIELD(member)
#define TIME(member)        SETTING_MS, FIELD(member)
#define PROBABILITY(member) SETTING_PROBABILITY, FIELD(member)
enum { SUSPEND, EVERY }; /* the first rows */
static const setting rows[] = {
    {"suspend", TIME(suspend_us), .most = MOST_MS},
    {"every", TIME(every_us), .most = LINK_MS_MOST},
    {"rate", SETTING_OWN, FIELD(rate_bps), .parse = parse_mbps},
    {"others", COUNT(others), .most = LINK_WIFI_OTHERS_MOST},
    {"busy", TIME(others_us), .most = MOST_MS},
    {"collision", PROBABILITY(collision)},
    {"frames", COUNT(frames), .least = 1, .most = LINK_WIFI_WINDOW},
    {"airtime", TIME(airtime_us), .most = MOST_MS},
    {"p", PROBABILITY(loss.p)},
    {"r", PROBABILITY(loss.r)},
    {"good", PROBABILITY(loss.good)},
    {"bad", PROBABILITY(loss.bad)},
    {"retries", COUNT(retries), .most = 255},
    {0},
};

static bool is_whole(const link_wifi *w, const bool given[]) {
    const bool suspends = w->suspend_us > 0 && w->every_us >= w->suspend_us + LEAST_ON_US;
    return given[SUSPEND] == suspends && given[EVERY] == suspends && w->others_us > 0 && w->airtime_us > 0 &&
           w->airtime_us <= AIRTIME_MOST_US;
}

bool link_wifi_parse(void *wifi, const char *text, char *wanted, size_t cap) {
    const bool off = strcmp(text, "off") == 0;
    link_wifi parsed = presets[0].wifi;
    const char *options = text, *rest;
    bool given[sizeof rows / sizeof rows[0]] = {false};
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if ((rest = link_text_after(text, presets[i].name))) {
            parsed = presets[i].wifi;
            options = rest;
        }
    }
    if (!off && (text[0] == '\0' || !link_text_read(rows, &parsed, options, given) || !is_whole(&parsed, given)))
        return error_set(wanted, cap,
                         "good, congested or off, and KEY=VALUE after colons with the keys of "
                         "docs/reference/links.md; suspend and every go together, and leave 100 ms");
    snprintf(parsed.rate, sizeof parsed.rate, "%llubps", (unsigned long long)parsed.rate_bps);
    *(link_wifi *)wifi = off ? (link_wifi){0} : parsed;
    return true;
}
