/* Settings as rows of a table, each declared once. A row says which values a setting takes and where they lie in a
 * structure. From the rows come the command line (getopt_long), its --help, the members of a JSON object, the entries
 * of a YAML file, and a description in JSON for programs in other languages.
 *
 *     static const setting rows[] = {
 *         {"chunk_bytes", SETTING_WHOLE, SETTING_FIELD(struct play, chunk_bytes), .least = 1, .most = 1 << 30,
 *          .value = "BYTES", .fallback = "65536", .help = "Size of one request."},
 *         {0},
 *     };
 *
 * is `--chunk-bytes BYTES` on the command line and `chunk_bytes` in files. A table ends with a row without a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

typedef enum {
    SETTING_WHOLE,   /* a whole number from least to most, stored as number * scale; unsigned of 1, 2, 4 or 8 bytes */
    SETTING_DECIMAL, /* a number with at most three decimals, as thousandths * scale; least, most in thousandths */
    SETTING_MS,      /* milliseconds with decimals, from least to most; uint64_t µs, rounded */
    SETTING_PROBABILITY, /* from 0 to 1; double */
    SETTING_SWITCH,      /* on or off, in files also true or false; bool */
    SETTING_FLAG,        /* an option without a value, in JSON true or false; bool */
    SETTING_WORD,        /* one of the words; const char *, points to the row's word */
    SETTING_CHOICE, /* one of the words; an enum, number from 0. With the words "no", "yes": in JSON also false, true */
    SETTING_TEXT,   /* a text that is not empty; const char *, points into argv or the JSON value */
    SETTING_OWN,    /* its own syntax: read() or parse() */
} setting_kind;

/* Who uses a setting; bits of setting.sides. */
enum { SETTING_OF_SERVER = 1, SETTING_OF_PLAYER = 2 };

typedef struct setting {
    const char *name;
    setting_kind kind;
    size_t offset, size; /* of the member, by SETTING_FIELD */
    uint64_t least, most;
    uint64_t scale;                   /* 0 is 1 */
    const char *const *words;         /* ends with NULL; or … */
    const char *(*word_at)(size_t i); /* … a registry: returns word i, NULL past the last */
    /* SETTING_OWN: one of them. `into` is the member, or the structure if the row has no SETTING_FIELD. read: false
     * with a phrase that follows the name, such as "takes ADDR:PORT, not 'x'". parse: false with the expected syntax,
     * such as "ADDR:PORT". */
    bool (*read)(void *into, const char *text, char *reason, size_t cap);
    bool (*parse)(void *into, const char *text, char *wanted, size_t cap);
    const char *pattern;  /* SETTING_OWN: regular expression of the syntax, for programs in other languages */
    const char *value;    /* name of the value in --help, such as "MS"; NULL: derived from kind and words */
    const char *fallback; /* the default, for --help; NULL: none, or it depends */
    const char *help;     /* one or more sentences */
    unsigned sides;       /* SETTING_OF_…; 0: all */
    bool can_reload;      /* the setting may change while the program runs */
    bool is_base;         /* it sets the defaults of others, so it is read before them in any order */
    bool repeats;         /* may be given several times, even with refuse_twice */
} setting;

/* Returns word i of a setting that takes words, NULL past the last. */
const char *setting_word(const setting *, size_t i);
/* Whether one of these sides has the setting; sides 0: all. */
bool setting_is_of(const setting *, unsigned sides);

#define SETTING_FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define SETTINGS_ERROR_BYTES 512
#define SETTINGS_TABLES_MAX  4

/* One of several tables that are read together, each for its own structure. */
typedef struct {
    const setting *rows;
    void *into;     /* structure to which the rows' offsets refer */
    unsigned sides; /* 0: all rows; else rows for one of these sides */
} setting_table;

/* The rows that are read from a source: all, with is_base rows first; or only one kind, if bases and others come from
 * several sources (a command line and a file). */
typedef enum { SETTINGS_ALL, SETTINGS_BASES, SETTINGS_OTHERS } settings_pass;

typedef struct {
    setting_table table[SETTINGS_TABLES_MAX];
    size_t count;
    settings_pass pass;
    bool mixed;        /* options may follow other arguments, which are moved to the end of argv */
    bool refuse_twice; /* an option that is given twice is an error, unless it repeats */
} setting_tables;

/* Returns the row of that name (- and _ are equal) and sets *into to its structure; NULL: none. */
const setting *settings_find(const setting_tables *, const char *name, void **into);

/* Reads one value. False with a sentence in error[SETTINGS_ERROR_BYTES], which begins with `label`, the name as the
 * user wrote it ("--chunk-bytes"). */
bool setting_read(const setting *, void *into, const char *label, const char *text, char *error);

/* Returns a JSON value as a text for setting_read(). A number is written to scratch, with 15 to 17 digits so that it
 * can be read back exactly. NULL: the setting does not take values of this type. */
#define SETTING_NUMBER_BYTES 40
const char *setting_text_of(const setting *, const json_t *value, char scratch[SETTING_NUMBER_BYTES]);
/* Writes setting_read()'s sentence for a JSON value that the setting does not take. Returns false. */
bool setting_refuse_json(const setting *, const char *label, const json_t *value, char *error);

/* Reads a command line by getopt_long. False with a sentence in error. *help: --help was given; settings are then read
 * only in part. *rest: index in argv of the first argument that is not an option; argc: none; rest NULL: such
 * an argument is an error. Without `mixed`, reading
 * stops there, so that the rest may belong to another command. If a setting is given twice, the last value counts,
 * except that read() may add values; see refuse_twice. */
bool settings_read_args(const setting_tables *, int argc, char **argv, bool *help, int *rest, char *error);

/* Reads the members of an object. null counts as absent. `where` is the prefix of members in errors, such as
 * "job.json: players[1]."; `also`: names of members that the caller reads, ends with NULL; may be NULL. */
bool settings_read_json(const setting_tables *, const json_t *object, const char *where, const char *const *also,
                        char *error);

/* Reads a YAML file: one mapping of names to scalars. It takes only can_reload settings. None of them may be a
 * SETTING_TEXT, which would point into the file's text. Errors name file and line. */
bool settings_read_yaml(const setting_tables *, const char *file, char *error);

/* Writes the rows' lines of --help, wrapped at 100 columns: "  --chunk-bytes BYTES   Size of one request. Default:
 * 65536." */
void settings_help(FILE *out, const setting *rows, unsigned sides);

/* Returns the structure's current values by name, as in a file. SETTING_OWN is left out; a text or word that is not set
 * is null. */
json_t *settings_values(const setting *rows, const void *from, unsigned sides);

/* Returns an array of objects: name, kind, words, open, least, most, pattern, value, default, help, sides, reload.
 * Numbers are as in a file. open: the words come from a registry, and another build may have more. */
json_t *settings_describe(const setting *rows);
