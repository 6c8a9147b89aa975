/* Lists of options in the text of a setting, "key=value:key=value", and files of lines. */
#ifndef RAILYARD_LINK_TEXT_H
#define RAILYARD_LINK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers.h"

#define LINK_MS_MOST 3600000 /* an hour: of every time that a setting gives */

/* Takes the next "key=value" off a list of them that colons separate. False at the end of the list; value is NULL where
 * there is no '='. */
typedef struct {
    const char *key, *value;
    size_t key_length, value_length;
} link_text_option;
bool link_text_next_option(const char **list, link_text_option *option);
bool link_text_option_is(const link_text_option *option, const char *key);

/* A file of lines that all have the same form. */
typedef struct {
    size_t size;                                                     /* of what it is read into */
    const char *(*add)(void *into, const char *line, size_t length); /* says what is wrong; NULL: nothing */
    void (*free)(void *into);
    const char *empty;                      /* what is wrong if there is no line */
    const char *(*check)(const void *into); /* of all lines together, as `add`; NULL: nothing to check */
} link_text_form;
/* Gives each line, without its end, to `add`. False, with the sentence "NAME:LINE: problem" in error, and nothing to
 * free, at the first problem. */
bool link_text_parse(const link_text_form *form, void *into, const char *name, const char *text, size_t length,
                     char *error, size_t error_size);
extern const char link_text_no_memory[]; /* a problem */
/* Room for one more of `count` items; NULL: there is no memory. The array doubles at each power of two. */
void *link_text_grown(void *items, size_t count, size_t size);

#endif
