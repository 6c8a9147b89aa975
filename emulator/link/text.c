#include "emulator/link/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

const char *link_text_read_lines(link_text_lines *lines,
                                 const char *(*add)(void *into, const char *line, size_t length), void *into) {
    const char *problem = NULL;
    while (!problem && lines->at < lines->end) {
        const char *line = lines->at, *newline = memchr(line, '\n', (size_t)(lines->end - line));
        lines->at = newline ? newline + 1 : lines->end;
        lines->number++;
        problem = add(into, line, (size_t)((newline ? newline : lines->end) - line));
    }
    return problem;
}

bool link_text_refuse(const link_text_lines *lines, const char *problem, char *error, size_t error_size) {
    return error_set(error, error_size, "%s:%zu: %s", lines->name, lines->number > 0 ? lines->number : 1, problem);
}

void *link_text_grown(void *items, size_t count, size_t size) {
    if (count > 0 && (count & (count - 1)) != 0)
        return items;
    return realloc(items, (count == 0 ? 1 : 2 * count) * size);
}
