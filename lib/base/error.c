#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

bool error_set(char *error, size_t cap, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, cap, format, args);
    va_end(args);
    return false;
}

bool error_say(const char *program, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}
