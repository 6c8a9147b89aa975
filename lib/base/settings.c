#include "base/settings.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"

#define OPTIONS_MAX     128
#define NAME_BYTES      64
#define WANTED_BYTES    160
#define SHOWN_BYTES     60 /* of a wrong value that an error shows */
#define FIRST_OPTION    256
#define HELP_OPTION     255
#define GIVEN_AT_MOST   1e12
#define DECIMAL_EPSILON 1e-6 /* tolerance, in thousandths: 0.1 is not exact in binary */

#define fail(error, ...) error_set(error, SETTINGS_ERROR_BYTES, __VA_ARGS__)

/* ---- Rows ---- */

const char *setting_word(const setting *row, size_t i) {
    return row->words ? row->words[i] : row->word_at(i);
}

bool setting_is_of(const setting *row, unsigned sides) {
    return sides == 0 || row->sides == 0 || (row->sides & sides) != 0;
}

static bool is_in_pass(const setting *row, settings_pass pass) {
    return pass == SETTINGS_ALL || row->is_base == (pass == SETTINGS_BASES);
}

static bool same_name(const char *a, const char *b) {
    for (; *a || *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
            return false;
    return true;
}

const setting *settings_find(const setting_tables *s, const char *name, void **into) {
    for (size_t i = 0; i < s->count; i++) {
        for (const setting *row = s->table[i].rows; row->name; row++) {
            if (setting_is_of(row, s->table[i].sides) && same_name(row->name, name)) {
                *into = s->table[i].into;
                return row;
            }
        }
    }
    return NULL;
}

/* ---- One value ---- */

/* Writes which values the setting takes, for error messages. */
static void describe(const setting *row, char *out, size_t cap) {
    switch (row->kind) {
    case SETTING_WHOLE:
        snprintf(out, cap, "a whole number from %" PRIu64 " to %" PRIu64, row->least, row->most);
        return;
    case SETTING_DECIMAL:
        snprintf(out, cap, "a number from %g to %.12g with at most three decimals", (double)row->least / 1e3,
                 (double)row->most / 1e3);
        return;
    case SETTING_MS:
        snprintf(out, cap, "ms (%" PRIu64 " to %" PRIu64 ")", row->least, row->most);
        return;
    case SETTING_PROBABILITY:
        snprintf(out, cap, "a probability (0 to 1)");
        return;
    case SETTING_SWITCH:
        snprintf(out, cap, "on or off");
        return;
    case SETTING_FLAG:
        snprintf(out, cap, "true or false");
        return;
    case SETTING_WORD:
    case SETTING_CHOICE:
        out[0] = '\0';
        for (size_t i = 0; setting_word(row, i); i++)
            snprintf(out + strlen(out), cap - strlen(out), "%s%s",
                     i == 0                     ? ""
                     : setting_word(row, i + 1) ? ", "
                                                : " or ",
                     setting_word(row, i));
        return;
    case SETTING_TEXT:
        snprintf(out, cap, "a text");
        return;
    case SETTING_OWN:
        snprintf(out, cap, "%s", row->value ? row->value : "a text");
        return;
    }
}

static bool wrong(const setting *row, const char *label, const char *text, char *error) {
    char wanted[WANTED_BYTES];
    describe(row, wanted, sizeof wanted);
    return fail(error, "%s takes %s, not '%.*s%s'.", label, wanted, SHOWN_BYTES, text,
                strlen(text) > SHOWN_BYTES ? "…" : "");
}

static void store_number(const setting *row, void *into, uint64_t value) {
    uint8_t *at = (uint8_t *)into + row->offset;
    const uint8_t byte = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    memcpy(at,
           row->size == 1   ? (const void *)&byte
           : row->size == 2 ? (const void *)&two
           : row->size == 4 ? (const void *)&four
                            : &value,
           row->size);
}

static bool store_in_range(const setting *row, void *into, uint64_t value) {
    if (value < row->least || value > row->most)
        return false;
    store_number(row, into, value * (row->scale > 0 ? row->scale : 1));
    return true;
}

static bool store_ms(const setting *row, void *into, const char *text) {
    uint64_t us;
    if (!number_parse_ms(text, strlen(text), (double)row->most, &us) || us < row->least * 1000)
        return false;
    memcpy((char *)into + row->offset, &us, sizeof us);
    return true;
}

static bool store_probability(const setting *row, void *into, const char *text) {
    double probability;
    if (!number_parse_probability(text, strlen(text), &probability))
        return false;
    memcpy((char *)into + row->offset, &probability, sizeof probability);
    return true;
}

static bool store_word(const setting *row, void *into, const char *text) {
    for (size_t i = 0; setting_word(row, i); i++) {
        const char *word = setting_word(row, i);
        if (strcmp(word, text) != 0)
            continue;
        if (row->kind == SETTING_CHOICE)
            store_number(row, into, i);
        else
            memcpy((char *)into + row->offset, &word, sizeof word);
        return true;
    }
    return false;
}

static bool store_truth(const setting *row, void *into, const char *text, const char *yes, const char *no) {
    const bool truth = strcmp(text, yes) == 0;
    if (!truth && strcmp(text, no) != 0)
        return false;
    memcpy((char *)into + row->offset, &truth, sizeof truth);
    return true;
}

static bool read_own(const setting *row, void *into, const char *label, const char *text, char *error) {
    char reason[SETTINGS_ERROR_BYTES * 3 / 4];
    void *member = (char *)into + row->offset;
    if (row->parse)
        return row->parse(member, text, reason, sizeof reason) ||
               fail(error, "%s takes %s, not '%.*s'.", label, reason, SHOWN_BYTES, text);
    return row->read(member, text, reason, sizeof reason) || fail(error, "%s %s.", label, reason);
}

bool setting_read(const setting *row, void *into, const char *label, const char *text, char *error) {
    uint64_t number = 0;
    bool ok = false;
    switch (row->kind) {
    case SETTING_WHOLE:
        ok = number_parse(text, strlen(text), &number) && store_in_range(row, into, number);
        break;
    case SETTING_DECIMAL:
        ok = number_parse_milli(text, &number) && store_in_range(row, into, number);
        break;
    case SETTING_MS:
        ok = store_ms(row, into, text);
        break;
    case SETTING_PROBABILITY:
        ok = store_probability(row, into, text);
        break;
    case SETTING_SWITCH:
        ok = store_truth(row, into, text, "on", "off");
        break;
    case SETTING_FLAG:
        ok = store_truth(row, into, text, "true", "false");
        break;
    case SETTING_WORD:
    case SETTING_CHOICE:
        ok = store_word(row, into, text);
        break;
    case SETTING_TEXT:
        ok = text[0] != '\0';
        memcpy((char *)into + row->offset, &text, sizeof text);
        break;
    case SETTING_OWN:
        return read_own(row, into, label, text, error);
    }
    return ok || wrong(row, label, text, error);
}

/* ---- The command line ---- */

/* The options for getopt_long; options[i] belongs to rows[i]. */
typedef struct {
    struct option options[OPTIONS_MAX + 2];
    char names[OPTIONS_MAX][NAME_BYTES];
    const setting *rows[OPTIONS_MAX];
    void *into[OPTIONS_MAX];
    bool given[OPTIONS_MAX];
    bool refuse_twice, mixed;
    size_t count;
} option_list;

static void list_options(const setting_tables *s, option_list *list) {
    list->refuse_twice = s->refuse_twice;
    list->mixed = s->mixed;
    for (size_t i = 0; i < s->count; i++) {
        for (const setting *row = s->table[i].rows; row->name && list->count < OPTIONS_MAX; row++) {
            if (!setting_is_of(row, s->table[i].sides))
                continue;
            const size_t n = list->count++;
            snprintf(list->names[n], NAME_BYTES, "%s", row->name);
            for (char *c = list->names[n]; *c; c++)
                *c = *c == '_' ? '-' : *c;
            list->rows[n] = row;
            list->into[n] = s->table[i].into;
            list->options[n] =
                (struct option){list->names[n], row->kind == SETTING_FLAG ? no_argument : required_argument, NULL,
                                FIRST_OPTION + (int)n};
        }
    }
    list->options[list->count] = (struct option){"help", no_argument, NULL, HELP_OPTION};
    list->options[list->count + 1] = (struct option){0};
}

static bool take_option(option_list *list, size_t n, const char *value, char *error) {
    const setting *row = list->rows[n];
    char label[NAME_BYTES + 2];
    snprintf(label, sizeof label, "--%s", list->names[n]);
    if (list->refuse_twice && list->given[n] && !row->repeats)
        return fail(error, "%s is given twice.", label);
    list->given[n] = true;
    return setting_read(row, list->into[n], label, row->kind == SETTING_FLAG ? "true" : value, error);
}

static bool read_pass(option_list *list, settings_pass pass, int argc, char **argv, bool *help, char *error) {
    int option;
    opterr = 0;
    optind = 0; /* GNU: restarts the scan */
    while ((option = getopt_long(argc, argv, list->mixed ? ":" : "+:", list->options, NULL)) != -1) {
        if (option == HELP_OPTION) {
            *help = true;
            return true;
        }
        if (option < FIRST_OPTION)
            return fail(error, option == ':' ? "%s needs a value; see --help." : "unknown option '%s'; see --help.",
                        argv[optind - 1]);
        const size_t n = (size_t)(option - FIRST_OPTION);
        if (is_in_pass(list->rows[n], pass) && !take_option(list, n, optarg, error))
            return false;
    }
    return true;
}

bool settings_read_args(const setting_tables *s, int argc, char **argv, bool *help, int *rest, char *error) {
    option_list *list = calloc(1, sizeof *list);
    *help = false;
    if (!list)
        return fail(error, "out of memory.");
    list_options(s, list);
    bool ok = true;
    if (s->pass != SETTINGS_OTHERS)
        ok = read_pass(list, SETTINGS_BASES, argc, argv, help, error);
    if (ok && !*help && s->pass != SETTINGS_BASES)
        ok = read_pass(list, SETTINGS_OTHERS, argc, argv, help, error);
    free(list);
    if (rest)
        *rest = optind;
    else if (ok && !*help && optind < argc)
        return fail(error, "unexpected argument '%.60s'; see --help.", argv[optind]);
    return ok;
}

/* ---- JSON ---- */

/* Converts a number with at most three decimals to thousandths, exactly. */
static bool json_thousandths(const json_t *value, uint64_t *out) {
    const double number = json_is_number(value) ? json_number_value(value) : -1, thousandths = nearbyint(number * 1e3);
    if (!(number >= 0) || number > GIVEN_AT_MOST ||
        fabs(thousandths - number * 1e3) > DECIMAL_EPSILON * (1.0 + thousandths * DECIMAL_EPSILON))
        return false;
    *out = (uint64_t)thousandths;
    return true;
}

static bool json_text(const json_t *value, const char **out) {
    *out = json_string_value(value);
    return *out && strlen(*out) == json_string_length(value);
}

static const char *number_text(double number, char scratch[SETTING_NUMBER_BYTES]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(scratch, SETTING_NUMBER_BYTES, "%.*g", digits, number);
        if (strtod(scratch, NULL) == number)
            break;
    }
    return scratch;
}

const char *setting_text_of(const setting *row, const json_t *value, char scratch[SETTING_NUMBER_BYTES]) {
    const bool is_number = row->kind == SETTING_WHOLE || row->kind == SETTING_DECIMAL || row->kind == SETTING_MS ||
                           row->kind == SETTING_PROBABILITY;
    const char *text;
    if (json_is_number(value))
        return is_number || row->kind == SETTING_OWN ? number_text(json_number_value(value), scratch) : NULL;
    if (json_is_boolean(value) && row->kind == SETTING_CHOICE && strcmp(setting_word(row, 0), "no") == 0)
        return setting_word(row, json_is_true(value));
    return !is_number && json_text(value, &text) ? text : NULL;
}

bool setting_refuse_json(const setting *row, const char *label, const json_t *value, char *error) {
    char wanted[WANTED_BYTES], *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    const char *shown = text ? text : "this";
    describe(row, wanted, sizeof wanted);
    fail(error, "%s takes %s, not %.*s%s.", label, wanted, SHOWN_BYTES, shown, strlen(shown) > SHOWN_BYTES ? "…" : "");
    free(text);
    return false;
}

static bool read_json_value(const setting *row, void *into, const char *label, const json_t *value, char *error) {
    const char *text;
    char scratch[SETTING_NUMBER_BYTES];
    uint64_t number = 0;
    bool ok = false;
    if (json_is_boolean(value) && (row->kind == SETTING_FLAG || row->kind == SETTING_SWITCH)) {
        const bool truth = json_is_true(value);
        memcpy((char *)into + row->offset, &truth, sizeof truth);
        return true;
    }
    if (row->kind == SETTING_WHOLE)
        ok = json_is_integer(value) && json_integer_value(value) >= 0 &&
             store_in_range(row, into, (uint64_t)json_integer_value(value));
    else if (row->kind == SETTING_DECIMAL)
        ok = json_thousandths(value, &number) && store_in_range(row, into, number);
    else if (row->kind != SETTING_FLAG && (text = setting_text_of(row, value, scratch)))
        return setting_read(row, into, label, text, error);
    return ok || setting_refuse_json(row, label, value, error);
}

static bool is_one_of(const char *const *names, const char *name) {
    for (size_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool read_json_pass(const setting_tables *s, settings_pass pass, const json_t *object, const char *where,
                           const char *const *also, char *error) {
    char label[SETTINGS_ERROR_BYTES / 2];
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        void *into = NULL;
        const setting *row = strchr(name, '-') ? NULL : settings_find(s, name, &into);
        if (!row && is_one_of(also, name))
            continue;
        snprintf(label, sizeof label, "%s%.*s", where, SHOWN_BYTES, name);
        if (!row)
            return fail(error, "%s is not a known member.", label);
        if (is_in_pass(row, pass) && !json_is_null(value) && !read_json_value(row, into, label, value, error))
            return false;
    }
    return true;
}

bool settings_read_json(const setting_tables *s, const json_t *object, const char *where, const char *const *also,
                        char *error) {
    return (s->pass == SETTINGS_OTHERS || read_json_pass(s, SETTINGS_BASES, object, where, also, error)) &&
           (s->pass == SETTINGS_BASES || read_json_pass(s, SETTINGS_OTHERS, object, where, also, error));
}
