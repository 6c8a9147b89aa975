#include "emulator/link/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define VALUE_BYTES 48 /* a longer value of an option is invalid */

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

static bool read_option(const setting *row, void *into, const link_text_option *option) {
    char value[VALUE_BYTES], unused[SETTINGS_ERROR_BYTES];
    if (option->value_length >= sizeof value)
        return false;
    memcpy(value, option->value, option->value_length);
    value[option->value_length] = '\0';
    return setting_read(row, into, row->name, value, unused);
}

bool link_text_read(const setting *rows, void *into, const char *list, bool given[]) {
    link_text_option o;
    bool good = list[0] == '\0' || list[strlen(list) - 1] != ':';
    while (good && link_text_next_option(&list, &o)) {
        size_t i = 0;
        while (rows[i].name && !link_text_option_is(&o, rows[i].name))
            i++;
        good = rows[i].name && !given[i] && read_option(&rows[i], into, &o);
        if (good)
            given[i] = true;
    }
    return good;
}

const char *link_text_after(const char *list, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(list, word, length) != 0)
        return NULL;
    list += length;
    return *list == '\0' ? list : list[0] == ':' && list[1] != '\0' ? list + 1 : NULL;
}

const char link_text_no_memory[] = "there is no memory for the line";

bool link_text_parse(const link_text_form *form, void *into, const char *name, const char *text, size_t length,
                     char *error, size_t error_size) {
    const char *problem = NULL, *end = text + length;
    size_t number = 0;
    memset(into, 0, form->size);
    for (; !problem && text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *line = text;
        text = newline ? newline + 1 : end;
        const size_t count = (size_t)((newline ? newline : end) - line);
        problem = form->add(into, line, count);
        if (problem && problem != link_text_no_memory && count > 0 && line[count - 1] == '\r')
            problem = "the line ends in CR LF; write plain newlines";
    }
    if (!problem)
        problem = number == 0 ? form->empty : form->check ? form->check(into) : NULL;
    if (!problem)
        return true;
    form->free(into);
    return error_set(error, error_size, "%s:%zu: %s", name, number > 0 ? number : 1, problem);
}

void *link_text_grown(void *items, size_t count, size_t size) {
    if (count > 0 && (count & (count - 1)) != 0)
        return items;
    return realloc(items, (count == 0 ? 1 : 2 * count) * size);
}
