#include "schemes/path_grammars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"
#include "base/technology.h"

#define MAX_MILLI   UINT64_C(86400000) /* one day, ms */
#define TEXT_BYTES  160
#define ORDER_COUNT (XL_TECH_UNKNOWN + 1)

/* Parses a number with at most three decimals, in thousandths. */
static bool take_milli(const char *text, uint64_t least, uint64_t most, uint64_t *out) {
    return number_parse_milli(text, out) && *out >= least && *out <= most;
}

static bool take_setting(const char *name, const char *value, xl_path_management *m) {
    const struct {
        const char *name;
        uint64_t *us;
    } times[] = {{"degraded", &m->degraded_us},
                 {"recovered", &m->recovered_us},
                 {"abandon", &m->abandon_us},
                 {"reopen", &m->reopen_us}};
    uint64_t milli;
    if (strcmp(name, "rtt") == 0 && take_milli(value, 1000, 1000000, &milli)) {
        m->rtt_percent = (unsigned)(milli / 10);
        return true;
    }
    if (strcmp(name, "loss") == 0 && take_milli(value, 1000, 100000, &milli)) {
        m->loss_percent = (unsigned)(milli / 1000);
        return true;
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (strcmp(name, times[i].name) == 0 && take_milli(value, 1, MAX_MILLI, &milli)) {
            *times[i].us = milli * 1000;
            return true;
        }
    }
    return false;
}

bool path_split(char *text, char **address, char **technology) {
    char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return false;
    *colon = '\0';
    *address = colon + 1;
    char *end = *address;
    if (**address == '[') {
        end = strchr(++*address, ']');
        if (!end || (end[1] != ':' && end[1] != '\0'))
            return false;
        *end++ = '\0';
    } else {
        end += strcspn(end, ":");
    }
    *technology = *end == ':' ? end + 1 : NULL;
    *end = '\0';
    return true;
}

bool path_management_read(void *management, const char *text, char *reason, size_t cap) {
    xl_path_management *out = management;
    char copy[TEXT_BYTES], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    char *word = strlen(text) < sizeof copy ? strtok_r(copy, ",", &rest) : NULL;
    bool on = word && strcmp(word, "on") == 0, ok = on || (word && strcmp(word, "off") == 0);
    out->enabled = on;
    while (ok && (word = strtok_r(NULL, ",", &rest))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        ok = on && value && take_setting(word, value, out);
    }
    if (!ok)
        snprintf(
            reason, cap,
            "takes off, or on with any of ,rtt=FACTOR ,loss=PERCENT ,degraded=S ,recovered=S ,abandon=S ,reopen=S, "
            "not '%.60s'",
            text);
    return ok;
}

bool migrate_after_read(void *limits, const char *text, char *reason, size_t cap) {
    xl_limits *c = limits;
    uint64_t n = 0;
    bool ok = true;
    if (strcmp(text, "silence") == 0) {
        c->probe_silence_us = 0;
        c->migrate_ptos = 0;
    } else if (strncmp(text, "silence:", 8) == 0 && take_milli(text + 8, 1, MAX_MILLI * 1000, &n)) {
        c->probe_silence_us = n;
        c->migrate_ptos = 0;
    } else if (strncmp(text, "ptos:", 5) == 0 && number_parse(text + 5, strlen(text + 5), &n) && n > 0 && n <= 10) {
        c->migrate_ptos = (unsigned)n;
    } else {
        ok = false;
        snprintf(reason, cap, "takes silence, silence:MS or ptos:N with N from 1 to 10, not '%.60s'", text);
    }
    return ok;
}

bool migrate_back_read(void *limits, const char *text, char *reason, size_t cap) {
    xl_limits *c = limits;
    uint64_t milli = 0;
    c->migrate_back = strcmp(text, "never") != 0;
    if (!c->migrate_back)
        return true;
    if (!take_milli(text, 0, MAX_MILLI, &milli))
        return error_set(reason, cap, "takes never, or a number of seconds, not '%.60s'", text);
    c->migrate_back_us = milli * 1000;
    return true;
}

bool path_order_parse(const char *text, unsigned rank[ORDER_COUNT], char *reason, size_t cap) {
    char copy[TEXT_BYTES], *rest = NULL;
    bool named[ORDER_COUNT] = {false};
    unsigned next = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        xl_technology t;
        if (!technology_parse(word, &t) || named[t])
            return error_set(reason, cap, "names each of " TECHNOLOGY_LIST " at most once, not '%.60s'", text);
        named[t] = true;
        rank[t] = next++;
    }
    for (size_t t = 0; t < ORDER_COUNT; t++)
        if (!named[t])
            rank[t] = next++;
    return true;
}

static bool parse_event(char *text, path_event *out) {
    static const char *const actions[] = {"add", "remove", "standby", "available"};
    char *action = strchr(text, ':'), *name = action ? strchr(action + 1, ':') : NULL;
    uint64_t milli = 0;
    if (!name)
        return false;
    *action++ = *name++ = '\0';
    size_t a = 0;
    while (a < sizeof actions / sizeof actions[0] && strcmp(action, actions[a]) != 0)
        a++;
    if (a == sizeof actions / sizeof actions[0] || !take_milli(text, 0, MAX_MILLI, &milli) || name[0] == '\0' ||
        strlen(name) >= sizeof out->name)
        return false;
    *out = (path_event){.at_us = milli * 1000, .action = (path_action)a};
    memcpy(out->name, name, strlen(name) + 1);
    return true;
}

static void insert(path_event *events, size_t *count, const path_event *event) {
    size_t at = (*count)++;
    for (; at > 0 && events[at - 1].at_us > event->at_us; at--)
        events[at] = events[at - 1];
    events[at] = *event;
}

bool path_events_parse(const char *text, path_event events[PATH_EVENTS_MAX], size_t *count, char *reason, size_t cap) {
    char *copy = strdup(text), *rest = NULL;
    bool ok = copy && text[0] != '\0';
    for (char *word = ok ? strtok_r(copy, ",", &rest) : NULL; word && ok; word = strtok_r(NULL, ",", &rest)) {
        path_event event;
        ok = *count < PATH_EVENTS_MAX && parse_event(word, &event);
        if (ok)
            insert(events, count, &event);
    }
    free(copy);
    return ok || error_set(reason, cap,
                           "takes T:add|remove|standby|available:NAME, T in seconds, at most %d of them, not '%.60s'",
                           PATH_EVENTS_MAX, text);
}

bool path_events_add_later(const path_event *events, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(events[i].name, name) == 0)
            return events[i].action == PATH_ADD;
    return false;
}
