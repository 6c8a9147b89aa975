#include "emulator/link/text.h"

#include <string.h>

bool link_text_next_option(const char **list, link_text_option *option) {
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

bool link_text_option_is(const link_text_option *option, const char *key) {
    return option->value && strlen(key) == option->key_length && memcmp(key, option->key, option->key_length) == 0;
}
