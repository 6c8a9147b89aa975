#include "http/keyvalue.h"

#include <string.h>

#define BLANK " \t\r"

static char *trim(char *text) {
    text += strspn(text, BLANK);
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANK, text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text;
}

keyvalue_reader keyvalue_reader_of(char *text) {
    static char none[1];
    return (keyvalue_reader){.next = text, .section = none};
}

/* The next line without its comment and the space around it; NULL at the end. */
static char *next_line(keyvalue_reader *r) {
    char *line = r->next;
    if (*line == '\0') {
        return NULL;
    }
    size_t len = strcspn(line, "\n");
    r->next = line + len + (line[len] == '\n');
    line[len] = '\0';
    line[strcspn(line, "#")] = '\0';
    r->line++;
    return trim(line);
}

keyvalue_result keyvalue_next(keyvalue_reader *r, keyvalue *out) {
    char *line;
    while ((line = next_line(r)) != NULL) {
        size_t len = strlen(line);
        char *equals = strchr(line, '=');
        *out = (keyvalue){.section = r->section, .section_number = r->section_number, .line = r->line};
        if (len == 0) {
            continue;
        }
        if (line[0] == '[' && line[len - 1] == ']') {
            line[len - 1] = '\0';
            r->section = trim(line + 1);
            r->section_number++;
            continue;
        }
        if (equals == NULL || equals == line) {
            return KEYVALUE_BAD_LINE;
        }
        *equals = '\0';
        out->name = trim(line);
        out->value = trim(equals + 1);
        return KEYVALUE_ENTRY;
    }
    return KEYVALUE_END;
}
