#include "emulator/link/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/link/report.h"
#include "emulator/link/text.h"

enum kind { TEXT, MS, WHOLE_MS, PROBABILITY, LOSS, ONOFF, RADIO, YES, HOLD };

/* In the order of enum link_key. The offset is of the parsed value in struct link_settings. */
static const struct setting {
    const char *key;
    enum kind kind;
    size_t offset;
} table[LINK_KEYS] = {
    [LINK_TRACE] = {"trace", TEXT, 0},
    [LINK_OFFSET] = {"offset", WHOLE_MS, offsetof(struct link_settings, offset_ms)},
    [LINK_ONCE] = {"once", YES, offsetof(struct link_settings, once)},
    [LINK_DELAY] = {"delay", MS, offsetof(struct link_settings, delay_us)},
    [LINK_DELAY_TRACE] = {"delay-trace", TEXT, 0},
    [LINK_DELAY_TRACE_END] = {"delay-trace-end", HOLD, offsetof(struct link_settings, hold_delay)},
    [LINK_JITTER] = {"jitter", MS, offsetof(struct link_settings, jitter_us)},
    [LINK_REORDER] = {"reorder", PROBABILITY, offsetof(struct link_settings, reorder)},
    [LINK_REORDER_DELAY] = {"reorder-delay", MS, offsetof(struct link_settings, reorder_us)},
    [LINK_LOSS] = {"loss", LOSS, offsetof(struct link_settings, loss)},
    [LINK_ONOFF] = {"onoff", ONOFF, offsetof(struct link_settings, onoff)},
    [LINK_RADIO] = {"radio", RADIO, offsetof(struct link_settings, radio)},
    [LINK_DUPLICATE] = {"duplicate", PROBABILITY, offsetof(struct link_settings, duplicate)},
    [LINK_QUEUE] = {"queue", TEXT, 0},
};

static const char *const ways[2] = {"up", "down"};

const char *link_settings_keys(void) {
    return "up=TRACE, down=TRACE, delay=MS, queue=QUEUE, loss=P, delay-trace=FILE, delay-trace-end=loop|hold, "
           "jitter=MS, reorder=P, reorder-delay=MS, duplicate=P, onoff=TIMES, radio=TIMES, once=yes, offset=MS";
}

/* Reads the value of one setting; false with what it must be, a phrase, in wanted. */
static bool read_value(const struct setting *s, const char *value, void *into, char *wanted, size_t size) {
    size_t length = strlen(value);
    switch (s->kind) {
    case TEXT:
        snprintf(wanted, size, "a text that is not empty");
        return length > 0;
    case MS:
        snprintf(wanted, size, "ms (0 to 3600000)");
        return link_text_ms(value, length, into);
    case WHOLE_MS:
        snprintf(wanted, size, "a whole number of ms (0 to %" PRIu32 ")", UINT32_MAX);
        return link_text_whole(value, length, UINT32_MAX, into);
    case PROBABILITY:
        snprintf(wanted, size, "a probability (0 to 1)");
        return link_text_probability(value, length, into);
    case LOSS:
        return link_loss_parse(into, value, wanted, size) == 0;
    case ONOFF:
        return link_onoff_parse(into, value, wanted, size) == 0;
    case RADIO:
        return link_radio_parse(into, value, wanted, size) == 0;
    case YES:
        snprintf(wanted, size, "yes or no");
        *(bool *)into = strcmp(value, "yes") == 0;
        return *(bool *)into || strcmp(value, "no") == 0;
    case HOLD:
        snprintf(wanted, size, "loop or hold");
        *(bool *)into = strcmp(value, "hold") == 0;
        return *(bool *)into || strcmp(value, "loop") == 0;
    }
    return false;
}

/* Finds the key's place in the table and the directions it is for; NULL: there is none. */
static const struct setting *find(const char *key, bool for_way[2]) {
    for_way[0] = for_way[1] = true;
    for (int way = 0; way < 2; way++) {
        size_t n = strlen(ways[way]);
        if (strncmp(key, ways[way], n) == 0 && (key[n] == '\0' || key[n] == '-')) {
            for_way[1 - way] = false;
            if (key[n] == '\0')
                return &table[LINK_TRACE];
            key += n + 1;
            break;
        }
    }
    for (size_t i = LINK_TRACE + 1; i < LINK_KEYS; i++)
        if (strcmp(key, table[i].key) == 0)
            return &table[i];
    return NULL;
}

static int set_one(struct link_settings *settings, const struct setting *s, const char *value, bool own) {
    size_t i = (size_t)(s - table);
    char ignored[160];
    char *copy = strdup(value);
    if (!copy)
        return -1;
    free(settings->text[i]);
    settings->text[i] = copy;
    settings->own[i] = own;
    (void)read_value(s, value, (char *)settings + s->offset, ignored, sizeof(ignored));
    return 0;
}

/* Puts a value that was read before into the directions that it is for. */
static int store(struct link_settings settings[2], const struct setting *s, const bool for_way[2], const char *key,
                 const char *value, char *error, size_t error_size) {
    size_t i = (size_t)(s - table);
    bool own = !for_way[0] || !for_way[1];
    for (int way = 0; way < 2; way++) {
        bool given = settings[way].text[i] != NULL;
        if (!for_way[way] || (given && settings[way].own[i] && !own))
            continue; /* what is said of one direction goes before what is said of both */
        if (given && settings[way].own[i] == own) {
            snprintf(error, error_size, "%s is given twice", key);
            return -1;
        }
        if (set_one(&settings[way], s, value, own) != 0) {
            snprintf(error, error_size, "no memory");
            return -1;
        }
    }
    return 0;
}

int link_settings_set(struct link_settings settings[2], const char *key, const char *value, char *error,
                      size_t error_size) {
    bool for_way[2];
    char wanted[160];
    struct link_settings scratch;
    const struct setting *s = find(key, for_way);
    if (!s) {
        snprintf(error, error_size, "\"%.60s\" is not one of %s", key, link_settings_keys());
        return -1;
    }
    if (value[0] == '\0') {
        snprintf(error, error_size, "%s= is empty", key);
        return -1;
    }
    if (!read_value(s, value, (char *)&scratch + s->offset, wanted, sizeof(wanted))) {
        snprintf(error, error_size, "%s=%.60s is not %s", key, value, wanted);
        return -1;
    }
    return store(settings, s, for_way, key, value, error, error_size);
}

static void unset(struct link_settings *settings, size_t i) {
    free(settings->text[i]);
    settings->text[i] = NULL;
}

int link_settings_override(struct link_settings base[2], struct link_settings top[2]) {
    int rc = 0;
    for (size_t way = 0; way < 2; way++) {
        if (top[way].text[LINK_DELAY]) {
            unset(&base[way], LINK_DELAY_TRACE);
            unset(&base[way], LINK_DELAY_TRACE_END);
            base[way].hold_delay = false;
        }
        if (top[way].text[LINK_DELAY_TRACE]) {
            unset(&base[way], LINK_DELAY);
            base[way].delay_us = 0;
        }
        for (size_t i = 0; i < LINK_KEYS && rc == 0; i++)
            if (top[way].text[i])
                rc = set_one(&base[way], &table[i], top[way].text[i], top[way].own[i]);
    }
    link_settings_free(top);
    return rc;
}

/* ---- JSON ---- */

/* "up_delay_ms" -> "up-delay"; NULL if there is no such member. */
static const struct setting *find_member(const char *member, char key[64], bool for_way[2]) {
    static const char unit[] = "_ms";
    size_t length = strlen(member), n = sizeof(unit) - 1;
    bool has_unit = length > n && strcmp(member + length - n, unit) == 0;
    length -= has_unit ? n : 0;
    if (length >= 64 || memchr(member, '-', length))
        return NULL;
    for (size_t i = 0; i < length; i++)
        key[i] = member[i] == '_' ? '-' : member[i];
    key[length] = '\0';
    const struct setting *s = find(key, for_way);
    bool wants_unit = s && (s->kind == MS || s->kind == WHOLE_MS);
    return s && wants_unit == has_unit ? s : NULL;
}

/* The value as text, in scratch where it is a number: the fewest digits that give it again. NULL: s does not take its
 * type. */
static const char *as_text(const struct setting *s, json_t *value, char scratch[40]) {
    bool is_number = s->kind == MS || s->kind == WHOLE_MS || s->kind == PROBABILITY || s->kind == LOSS;
    if (is_number && json_is_number(value)) {
        double number = json_number_value(value);
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(scratch, 40, "%.*g", digits, number);
            if (strtod(scratch, NULL) == number)
                break;
        }
        return scratch;
    }
    if (s->kind == YES && json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    const char *text = json_string_value(value);
    bool is_text = s->kind == TEXT || s->kind == LOSS || s->kind == ONOFF || s->kind == RADIO || s->kind == HOLD;
    return is_text && text && strlen(text) == json_string_length(value) ? text : NULL;
}

int link_settings_set_json(struct link_settings settings[2], const char *member, json_t *value, char *error,
                           size_t error_size) {
    char key[64], scratch_text[40], wanted[160];
    bool for_way[2];
    struct link_settings scratch;
    const struct setting *s = find_member(member, key, for_way);
    if (!s) {
        snprintf(error, error_size, "%.60s is not a known member; docs/reference/link.md lists them", member);
        return -1;
    }
    const char *text = as_text(s, value, scratch_text);
    if (!read_value(s, !text ? "" : text, (char *)&scratch + s->offset, wanted, sizeof(wanted))) {
        char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
        snprintf(error, error_size, "%s takes %s, not %.48s", member, wanted, shown ? shown : "this");
        free(shown);
        return -1;
    }
    return store(settings, s, for_way, member, text, error, error_size);
}

/* ---- the whole ---- */

int link_settings_check(const struct link_settings settings[2], char *error, size_t error_size) {
    for (int way = 0; way < 2; way++) {
        const struct link_settings *s = &settings[way];
        const char *missing = !s->text[LINK_TRACE]                                 ? ways[way]
                              : !s->text[LINK_DELAY] && !s->text[LINK_DELAY_TRACE] ? "delay"
                                                                                   : NULL;
        const char *with = s->text[LINK_DELAY] && s->text[LINK_DELAY_TRACE] ? "delay and delay-trace exclude each other"
                           : s->hold_delay && !s->text[LINK_DELAY_TRACE]    ? "delay-trace-end goes with a delay-trace"
                           : s->reorder > 0.0 && s->reorder_us == 0         ? "reorder needs a reorder-delay, in ms"
                                                                            : NULL;
        if (missing) {
            snprintf(error, error_size, "%s is missing", missing);
            return -1;
        }
        if (with) {
            snprintf(error, error_size, "%slink: %s", ways[way], with);
            return -1;
        }
    }
    return 0;
}

void link_settings_free(struct link_settings settings[2]) {
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < LINK_KEYS; i++)
            free(settings[way].text[i]);
        settings[way] = (struct link_settings){0};
    }
}

struct link_config link_settings_config(const struct link_settings *settings, uint64_t start_offset_ms) {
    return (struct link_config){
        .once = settings->once,
        .start_offset_ms = start_offset_ms + settings->offset_ms,
        .queue = settings->text[LINK_QUEUE],
        .delay_us = settings->delay_us,
        .hold_delay = settings->hold_delay,
        .jitter_us = settings->jitter_us,
        .reorder = settings->reorder,
        .reorder_us = settings->reorder_us,
        .loss = settings->loss,
        .onoff = settings->onoff,
        .radio = settings->radio,
        .duplicate = settings->duplicate,
    };
}

/* ---- reports ---- */

static const char *queue_of(const struct link_settings *s) {
    return s->text[LINK_QUEUE] ? s->text[LINK_QUEUE] : "infinite";
}

static bool has_plain_delay(const struct link_settings *s) {
    return !s->text[LINK_DELAY_TRACE];
}

void link_settings_report_path(const struct link_settings settings[2], json_t *path) {
    const struct link_settings *up = &settings[0], *down = &settings[1];
    bool delay = has_plain_delay(up) && has_plain_delay(down) && up->delay_us == down->delay_us;
    bool loss = up->loss.p == 0.0 && down->loss.p == 0.0 && up->loss.good == down->loss.good;
    bool queue = strcmp(queue_of(up), queue_of(down)) == 0;
    json_object_set_new(path, "delay_ms", delay ? json_real((double)up->delay_us / 1000.0) : json_null());
    json_object_set_new(path, "loss", loss ? json_real(up->loss.good) : json_null());
    json_object_set_new(path, "queue", queue ? link_report_text(queue_of(up)) : json_null());
}

void link_settings_report(const struct link_settings *settings, json_t *direction) {
    json_t *texts = json_object();
    bool more = settings->loss.p > 0.0;
    for (size_t i = LINK_TRACE + 1; i < LINK_KEYS; i++) {
        bool is_of_path = i == LINK_DELAY || i == LINK_LOSS || i == LINK_QUEUE;
        if (settings->text[i]) {
            json_object_set_new(texts, table[i].key, link_report_text(settings->text[i]));
            more = more || settings->own[i] || !is_of_path;
        }
    }
    if (more)
        json_object_set_new(direction, "settings", texts);
    else
        json_decref(texts);
}
