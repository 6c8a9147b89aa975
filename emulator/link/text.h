/* Reading the numbers of specifications. Each returns false for anything but one number in its range. */
#ifndef RAILYARD_LINK_TEXT_H
#define RAILYARD_LINK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number from 0 to most. */
bool link_text_whole(const char *text, size_t length, uint64_t most, uint64_t *value);
/* A number with decimals, from 0 to most, without sign; an exponent is allowed. */
bool link_text_number(const char *text, size_t length, double most, double *value);
/* ms with decimals as us, rounded; at most an hour. */
bool link_text_ms(const char *text, size_t length, uint64_t *us);
bool link_text_probability(const char *text, size_t length, double *value);

/* Takes the next "key=value" off a list of them that colons separate. False at the end of the list; value is NULL where
 * there is no '='. */
struct link_text_option {
    const char *key, *value;
    size_t key_length, value_length;
};
bool link_text_next_option(const char **list, struct link_text_option *option);
bool link_text_option_is(const struct link_text_option *option, const char *key);

#endif
