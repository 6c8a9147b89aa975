#include "http/quic_scheme.h"

#include "http/reinjection_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Kernel TCP has no idle timeout: with a short one, only QUIC would lose its connection in a long tunnel. */
#define IDLE_TIMEOUT_US 120000000u

typedef struct {
    const char *name;
    bool multipath, migration;
    const char *scheduler, *reinjection;
    bool qoe_control;
    uint64_t rescue_gain_us;
    unsigned rescue_permille;
    uint64_t race_us; /* of the player */
} quic_scheme;

/* RFC 8305 section 5: the recommended delay between connection attempts. */
#define RACE_US 250000

static const quic_scheme schemes[] = {
    /* One path, whatever happens to it. */
    {"sp", .scheduler = "minrtt", .reinjection = "none"},
    /* Connection migration: one path at a time, another one when it dies (RFC 9000 section 9). */
    {"cm", .migration = true, .scheduler = "minrtt", .reinjection = "none"},
    /* Multipath QUIC as it comes: min-RTT scheduler, nothing sent twice. */
    {"vanilla-mp", .multipath = true, .scheduler = "minrtt", .reinjection = "none"},
    /* XLINK: frame- and stream-priority re-injection under the double-threshold QoE control (paper sections 5.1
       and 5.2). */
    {"xlink", .multipath = true, .scheduler = "xlink", .reinjection = "frame", .qoe_control = true},
    /* XLINK, and what this testbed adds to it: docs/xlink-plus.md. */
    {"xlink+", .multipath = true, .scheduler = "earliest", .reinjection = "frame", .qoe_control = true,
     .rescue_gain_us = RESCUE_GAIN_US, .rescue_permille = RESCUE_PERMILLE, .race_us = RACE_US},
};

const char *const quic_scheme_names[] = {"sp", "cm", "vanilla-mp", "xlink", "xlink+", NULL};

static const quic_scheme *find(const char *name) {
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
    }
    return NULL;
}

bool quic_scheme_apply(const char *name, xl_config *config) {
    const quic_scheme *scheme = find(name);
    if (!scheme)
        return false;
    config->scheme.enable_multipath = scheme->multipath;
    config->scheme.enable_migration = scheme->migration;
    config->scheme.scheduler = scheme->scheduler;
    config->scheme.reinjection = scheme->reinjection;
    config->scheme.qoe_control = scheme->qoe_control;
    config->scheme.rescue_gain_us = scheme->rescue_gain_us;
    config->scheme.rescue_permille = scheme->rescue_permille;
    config->limits.idle_timeout_us = IDLE_TIMEOUT_US;
    return true;
}

/* The registry's own copy of the name. */
static const char *look_up(const char *(*name_at)(size_t), const char *name) {
    for (size_t i = 0; name_at(i); i++) {
        if (strcmp(name_at(i), name) == 0)
            return name_at(i);
    }
    return NULL;
}

static bool choose(const char *what, const char *(*name_at)(size_t), const char *name, const char **out, char *error,
                   size_t cap) {
    if (!name)
        return true;
    const char *found = look_up(name_at, name);
    if (found) {
        *out = found;
        return true;
    }
    snprintf(error, cap, "'%.40s' is not a %s; known are ", name, what);
    for (size_t i = 0; name_at(i); i++) {
        size_t used = strlen(error);
        snprintf(error + used, cap - used, "%s%s", i > 0 ? ", " : "", name_at(i));
    }
    return false;
}

bool quic_scheme_override(const char *scheduler, const char *congestion, xl_scheme *scheme, char *error, size_t cap) {
    return choose("scheduler", xl_scheduler_name, scheduler, &scheme->scheduler, error, cap) &&
           choose("congestion controller", xl_congestion_name, congestion, &scheme->congestion, error, cap);
}

bool quic_scheme_uses_all_paths(const char *name) {
    const quic_scheme *scheme = find(name);
    return scheme && (scheme->multipath || scheme->migration);
}

bool quic_scheme_is_multipath(const char *name) {
    const quic_scheme *scheme = find(name);
    return scheme && scheme->multipath;
}

uint64_t quic_scheme_race_us(const char *name) {
    const quic_scheme *scheme = find(name);
    return scheme ? scheme->race_us : 0;
}
