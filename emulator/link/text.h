/* Lists of options in the text of a setting: "key=value:key=value". */
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

#endif
