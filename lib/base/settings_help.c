/* Output of rows: --help, current values, and a description for other programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"

#define COLUMNS     100
#define HELP_COLUMN 30
#define HEAD_BYTES  256
#define WORDS_BYTES 160

static bool has_words(const setting *row) {
    return row->words || row->word_at;
}

/* Writes "original|fastest". */
static void join_words(const setting *row, char *out, size_t cap) {
    out[0] = '\0';
    for (size_t i = 0; setting_word(row, i); i++)
        snprintf(out + strlen(out), cap - strlen(out), "%s%s", i > 0 ? "|" : "", setting_word(row, i));
}

/* Writes "  --ack-path original|fastest". */
static void write_head(const setting *row, char *out, size_t cap) {
    char words[WORDS_BYTES];
    const char *value = row->value;
    if (!value && has_words(row)) {
        join_words(row, words, sizeof words);
        value = words;
    } else if (!value) {
        value = row->kind == SETTING_SWITCH ? "on|off" : row->kind == SETTING_FLAG ? "" : "TEXT";
    }
    snprintf(out, cap, "  --%s%s%s", row->name, value[0] ? " " : "", value);
    for (char *c = out; c < out + 4 + strlen(row->name); c++)
        *c = *c == '_' ? '-' : *c;
}

/* Writes the text from `column` on, wrapped, with further lines indented. */
static void wrap(FILE *out, const char *text, size_t *column) {
    while (*text) {
        const size_t len = strcspn(text, " ");
        if (*column + 1 + len > COLUMNS) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            *column = HELP_COLUMN;
        }
        fprintf(out, "%s%.*s", *column > HELP_COLUMN ? " " : "", (int)len, text);
        *column += len + (*column > HELP_COLUMN);
        text += len + (text[len] == ' ');
    }
}

static void write_row(FILE *out, const setting *row) {
    char head[HEAD_BYTES], fallback[HEAD_BYTES];
    write_head(row, head, sizeof head);
    size_t column = strlen(head);
    fprintf(out, "%s", head);
    if (column + 2 > HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", (int)(HELP_COLUMN - column), "");
    column = HELP_COLUMN;
    wrap(out, row->help ? row->help : "", &column);
    if (row->fallback) {
        snprintf(fallback, sizeof fallback, "Default: %s.", row->fallback);
        wrap(out, fallback, &column);
    }
    fputc('\n', out);
}

void settings_help(FILE *out, const setting *rows, unsigned sides) {
    for (const setting *row = rows; row->name; row++)
        if (setting_is_of(row, sides))
            write_row(out, row);
}

static uint64_t load_number(const setting *row, const void *from) {
    const uint8_t *at = (const uint8_t *)from + row->offset;
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (row->size) {
    case 1:
        memcpy(&one, at, sizeof one);
        return one;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        memcpy(&four, at, sizeof four);
        return four;
    default:
        memcpy(&eight, at, sizeof eight);
        return eight;
    }
}

static json_t *value_of(const setting *row, const void *from) {
    const uint64_t scale = row->scale > 0 ? row->scale : 1;
    const char *text;
    double probability;
    switch (row->kind) {
    case SETTING_WHOLE:
        return json_integer((json_int_t)(load_number(row, from) / scale));
    case SETTING_DECIMAL:
        return json_real((double)(load_number(row, from) / scale) / 1e3);
    case SETTING_MS:
        return json_real((double)load_number(row, from) / 1e3);
    case SETTING_PROBABILITY:
        memcpy(&probability, (const char *)from + row->offset, sizeof probability);
        return json_real(probability);
    case SETTING_SWITCH:
        return json_string(load_number(row, from) ? "on" : "off");
    case SETTING_FLAG:
        return json_boolean(load_number(row, from));
    case SETTING_CHOICE:
        return json_string(setting_word(row, load_number(row, from)));
    case SETTING_WORD:
    case SETTING_TEXT:
        memcpy(&text, (const char *)from + row->offset, sizeof text);
        return text ? json_string(text) : json_null();
    case SETTING_OWN:
        return NULL;
    }
    return NULL;
}

json_t *settings_values(const setting *rows, const void *from, unsigned sides) {
    json_t *values = json_object();
    for (const setting *row = rows; row->name; row++) {
        json_t *value = setting_is_of(row, sides) ? value_of(row, from) : NULL;
        if (value)
            json_object_set_new(values, row->name, value);
    }
    return values;
}

static json_t *describe_words(const setting *row) {
    json_t *words = json_array();
    for (size_t i = 0; setting_word(row, i); i++)
        json_array_append_new(words, json_string(setting_word(row, i)));
    return words;
}

static json_t *describe_sides(const setting *row) {
    json_t *sides = json_array();
    if (row->sides & SETTING_OF_SERVER)
        json_array_append_new(sides, json_string("server"));
    if (row->sides & SETTING_OF_PLAYER)
        json_array_append_new(sides, json_string("player"));
    return sides;
}

static json_t *describe_row(const setting *row) {
    static const char *const kinds[] = {"whole", "decimal", "ms",   "probability", "switch",
                                        "flag",  "word",    "word", "text",        "text"};
    json_t *o = json_pack("{s:s, s:s, s:b, s:o, s:s}", "name", row->name, "kind", kinds[row->kind], "reload",
                          row->can_reload, "sides", describe_sides(row), "help", row->help ? row->help : "");
    if (row->kind == SETTING_WHOLE || row->kind == SETTING_MS) {
        json_object_set_new(o, "least", json_integer((json_int_t)row->least));
        json_object_set_new(o, "most", json_integer((json_int_t)row->most));
    } else if (row->kind == SETTING_DECIMAL) {
        json_object_set_new(o, "least", json_real((double)row->least / 1e3));
        json_object_set_new(o, "most", json_real((double)row->most / 1e3));
    } else if (has_words(row)) {
        json_object_set_new(o, "words", describe_words(row));
        if (row->kind == SETTING_WORD && row->word_at)
            json_object_set_new(o, "open", json_true());
    }
    if (row->pattern)
        json_object_set_new(o, "pattern", json_string(row->pattern));
    if (row->value)
        json_object_set_new(o, "value", json_string(row->value));
    if (row->fallback)
        json_object_set_new(o, "default", json_string(row->fallback));
    return o;
}

json_t *settings_describe(const setting *rows) {
    json_t *all = json_array();
    for (const setting *row = rows; row->name; row++)
        json_array_append_new(all, describe_row(row));
    return all;
}
