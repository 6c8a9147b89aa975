#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool error_set(char *error, size_t cap, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, cap, format, args);
    va_end(args);
    return false;
}

bool error_say(const char *program, const char *format, ...) {
    char *sentence = NULL;
    va_list args;
    va_start(args, format);
    const bool is_made = vasprintf(&sentence, format, args) >= 0;
    va_end(args);
    for (char *c = is_made ? sentence : NULL; c && *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    fprintf(stderr, "%s: %s\n", program, is_made ? sentence : "out of memory.");
    if (is_made)
        free(sentence);
    return false;
}

void make_printable(char *text) {
    for (char *c = text; *c != '\0'; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
}
