/* Lists of options in the text of a setting, "key=value:key=value", and files of lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/numbers.h"
#include "base/settings.h"

#define LINK_MS_MOST 3600000 /* an hour; the largest time that a setting may have */

/* Takes the next "key=value" off a list that is separated by colons. False at the end of the list. value is NULL if
 * there is no '='. */
typedef struct {
    const char *key, *value;
    size_t key_length, value_length;
} link_text_option;
bool link_text_next_option(const char **list, link_text_option *option);
bool link_text_option_is(const link_text_option *option, const char *key);
/* Reads a whole list: rows of `into`, of which given[i] says that row i is in the list. False if a key is unknown or
 * given twice, a value is not what its row takes, or the list ends in a colon. */
bool link_text_read(const setting *rows, void *into, const char *list, bool given[]);
/* Returns the rest of a list that begins with this word, which may be empty; NULL: it begins with something else. */
const char *link_text_after(const char *list, const char *word);

/* A file of lines that all have the same form. */
typedef struct {
    size_t size;                                                     /* of the object that it is read into */
    const char *(*add)(void *into, const char *line, size_t length); /* returns the problem, or NULL */
    void (*free)(void *into);
    const char *empty;                      /* the problem if there is no line */
    const char *(*check)(const void *into); /* checks all lines together, as `add`; NULL: no check */
} link_text_form;
/* Passes each line, without its end, to `add`. At the first problem: false, the sentence "NAME:LINE: problem" in error,
 * and nothing to free. */
bool link_text_parse(const link_text_form *form, void *into, const char *name, const char *text, size_t length,
                     char *error, size_t error_size);
extern const char link_text_no_memory[]; /* a problem that `add` may return */
/* Returns the array of `count` items with room for one more, or NULL without memory; then items stays valid. The
 * capacity doubles at each power of two. */
void *link_text_grown(void *items, size_t count, size_t size);
