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
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

typedef enum {
    SETTING_WHOLE,       /* a whole number from least to most; unsigned of 1, 2, 4 or 8 bytes: the number * scale */
    SETTING_DECIMAL,     /* a number with at most three decimals: thousandths * scale; least and most in thousandths */
    SETTING_MS,          /* ms with decimals, from least to most: uint64_t µs, rounded */
    SETTING_PROBABILITY, /* from 0 to 1: double */
    SETTING_SWITCH,      /* on or off, in JSON also true or false: bool */
    SETTING_FLAG,        /* an option without a value, in JSON true or false: bool */
    SETTING_WORD,        /* one of the words: const char *, the table's own copy */
    SETTING_CHOICE,      /* one of the words: its number, from 0, in an enum; of "no", "yes" also false, true in JSON */
    SETTING_TEXT,        /* any text but the empty one: const char *, lives as long as what it was read from */
    SETTING_OWN,         /* a grammar of its own: read() */
} setting_kind;

/* Who uses a setting; bits of setting.sides. */
enum { SETTING_OF_SERVER = 1, SETTING_OF_PLAYER = 2 };

typedef struct setting {
    const char *name;
    setting_kind kind;
    size_t offset, size; /* of the member: SETTING_FIELD */
    uint64_t least, most;
    uint64_t scale;                   /* 0 = 1 */
    const char *const *words;         /* NULL terminated; or */
    const char *(*word_at)(size_t i); /* a registry: word number i, NULL past the last */
    /* SETTING_OWN, either of them. `into` is the member, or the structure where the row has no SETTING_FIELD. read:
     * false with a phrase that follows the name, such as "takes ADDR:PORT, not 'x'". parse: false with what is wanted,
     * such as "ADDR:PORT". */
    bool (*read)(void *into, const char *text, char *reason, size_t cap);
    bool (*parse)(void *into, const char *text, char *wanted, size_t cap);
    const char *pattern;  /* SETTING_OWN: a regular expression of the grammar, for programs in other languages */
    const char *value;    /* what --help calls the value: "N", "MS"; NULL: the words with | between */
    const char *fallback; /* the default in words; NULL: none, or it depends */
    const char *help;     /* sentences */
    unsigned sides;       /* 0: the program's own */
    bool can_reload;      /* it may change while the program runs */
    bool is_base;         /* it gives others their defaults, so it is read before them, wherever it stands */
    bool repeats;         /* each further one adds, even where refuse_twice */
} setting;

/* Word number i of a setting that takes words, NULL past the last. */
const char *setting_word(const setting *, size_t i);
/* Whether one of these sides has the setting; sides 0: all. */
bool setting_is_of(const setting *, unsigned sides);

#define SETTING_FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define SETTINGS_ERROR_BYTES 512
#define SETTINGS_TABLES_MAX  4

/* Several tables over several structures, read as one: a program's own, and those that it shares with others. */
typedef struct {
    const setting *rows;
    void *into;     /* the structure that the rows' offsets are of */
    unsigned sides; /* 0: all rows; else those with one of these bits */
} setting_table;

/* Which rows a source is read for: all, those that are bases first; or only those of one kind, where several sources
 * (a command line and a file) give bases and others. */
typedef enum { SETTINGS_ALL, SETTINGS_BASES, SETTINGS_OTHERS } settings_pass;

typedef struct {
    setting_table table[SETTINGS_TABLES_MAX];
    size_t count;
    settings_pass pass;
    bool mixed;        /* options may follow other arguments, which are moved to the end of argv */
    bool refuse_twice; /* a command line that gives an option twice is wrong, but for one that repeats */
} setting_tables;

/* The row of that name, with - and _ alike, and in *into its structure; NULL: there is none. */
const setting *settings_find(const setting_tables *, const char *name, void **into);

/* Reads one value. False with a sentence in error[SETTINGS_ERROR_BYTES]: `label`, which names the setting as its user
 * wrote it ("--chunk-bytes"), then what it takes and what it got. */
bool setting_read(const setting *, void *into, const char *label, const char *text, char *error);

/* A JSON value as the text that setting_read() takes; of a number, in scratch, the fewest digits that give it again.
 * NULL: the setting does not take values of this type. */
#define SETTING_NUMBER_BYTES 40
const char *setting_text_of(const setting *, const json_t *value, char scratch[SETTING_NUMBER_BYTES]);
/* False always, with the sentence of setting_read() for a JSON value that the setting does not take. */
bool setting_refuse_json(const setting *, const char *label, const json_t *value, char *error);

/* Reads a command line by getopt_long. False with a sentence in error. *help: --help was given, and nothing else was
 * looked at. *rest: the index in argv of the first argument that is not an option, argc if there is none; reading stops
 * there, so that what follows may be another command's, but not if `mixed`. If a setting is given twice, the last value
 * counts, or both where it has a grammar of its own that adds; see refuse_twice.
 */
bool settings_read_args(const setting_tables *, int argc, char **argv, bool *help, int *rest, char *error);

/* Reads the members of an object. null counts as absent. `where` is what the members are of, with its dot or colon:
 * "job.json: players[1]."; `also` are names, NULL terminated, of members that the caller reads; may be NULL. */
bool settings_read_json(const setting_tables *, const json_t *object, const char *where, const char *const *also,
                        char *error);

/* Reads a YAML file: one mapping of names to scalars. Only settings that can_reload are known to it; none of them is a
 * SETTING_TEXT, so that nothing of the file has to live on. Errors name file and line. */
bool settings_read_yaml(const setting_tables *, const char *file, char *error);

/* Writes the lines of --help of a table's rows, wrapped at 100 columns: "  --chunk-bytes BYTES   Size of one request.
 * Default: 65536." */
void settings_help(FILE *out, const setting *rows, unsigned sides);

/* The values that a structure has now, by name, as a file would give them. Settings with a grammar of their own are
 * left out; a text or word that is not set is null. */
json_t *settings_values(const setting *rows, const void *from, unsigned sides);

/* An array of objects: name, kind, words, open, least, most, pattern, value, default, help, sides, reload. Numbers are
 * as a file has them. open: the words are those of a registry, and another build may have more. */
json_t *settings_describe(const setting *rows);

#endif
