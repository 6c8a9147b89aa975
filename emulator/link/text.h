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

/* The lines of a file, as they are read. */
typedef struct {
    const char *name, *at, *end;
    size_t number; /* of the line that was read last, from 1 */
} link_text_lines;
/* Gives each line, without its end, to `add`, which says what is wrong with it, NULL for nothing. Ends at the first
 * problem, and returns it. */
const char *link_text_read_lines(link_text_lines *lines,
                                 const char *(*add)(void *into, const char *line, size_t length), void *into);
/* False, with the sentence "NAME:LINE: problem" in error. */
bool link_text_refuse(const link_text_lines *lines, const char *problem, char *error, size_t error_size);
/* Room for one more of `count` items; NULL: there is no memory. The array doubles at each power of two. */
void *link_text_grown(void *items, size_t count, size_t size);

#endif
