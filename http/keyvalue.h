/* Lines `name = value` in sections `[name]`, with comments from # to the end of the line: the form of configuration
 * files. */
#ifndef HTTP_KEYVALUE_H
#define HTTP_KEYVALUE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *next; /* the rest of the text */
    unsigned line;
    char *section; /* "" before the first one */
    unsigned section_number;
} keyvalue_reader;

typedef struct {
    const char *section;
    unsigned section_number; /* 0 before the first one: two sections may have one name */
    const char *name, *value;
    unsigned line; /* from 1 */
} keyvalue;

typedef enum { KEYVALUE_ENTRY, KEYVALUE_END, KEYVALUE_BAD_LINE } keyvalue_result;

/* The text is cut into pieces in place; entries point into it. */
keyvalue_reader keyvalue_reader_of(char *text);
/* KEYVALUE_BAD_LINE: out->line is neither of the three. */
keyvalue_result keyvalue_next(keyvalue_reader *, keyvalue *out);

#endif
