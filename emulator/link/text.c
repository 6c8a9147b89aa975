#include "emulator/link/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool link_text_whole(const char *text, size_t length, uint64_t most, uint64_t *value) {
    uint64_t v = 0;
    if (length == 0 || length > 18)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(text[i] - '0');
    }
    *value = v;
    return v <= most;
}

bool link_text_number(const char *text, size_t length, double most, double *value) {
    char copy[40], *end;
    if (length == 0 || length >= sizeof(copy) || ((text[0] < '0' || text[0] > '9') && text[0] != '.'))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-") != length) /* strtod takes more, hexadecimal for one */
        return false;
    double number = strtod(copy, &end);
    if (end == copy || *end != '\0' || !(number >= 0.0 && number <= most))
        return false;
    *value = number;
    return true;
}

bool link_text_ms(const char *text, size_t length, uint64_t *us) {
    double ms;
    if (!link_text_number(text, length, 3600000.0, &ms))
        return false;
    *us = (uint64_t)llround(ms * 1000.0);
    return true;
}

bool link_text_probability(const char *text, size_t length, double *value) {
    return link_text_number(text, length, 1.0, value);
}

bool link_text_next_option(const char **list, struct link_text_option *option) {
    if (**list == '\0')
        return false;
    size_t length = strcspn(*list, ":");
    const char *equals = memchr(*list, '=', length);
    option->key = *list;
    option->key_length = !equals ? length : (size_t)(equals - *list);
    option->value = !equals ? NULL : equals + 1;
    option->value_length = !equals ? 0 : length - option->key_length - 1;
    *list += length + ((*list)[length] == ':');
    return true;
}

bool link_text_option_is(const struct link_text_option *option, const char *key) {
    return option->value && strlen(key) == option->key_length && memcmp(key, option->key, option->key_length) == 0;
}
