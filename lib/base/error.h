/* What went wrong, in a sentence for the user. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the sentence to error; false, for the caller to return. */
__attribute__((format(printf, 3, 4))) bool error_set(char *error, size_t cap, const char *format, ...);
/* The same, for those who return 0 or -1. */
#define error_code(error, cap, ...) (error_set(error, cap, __VA_ARGS__) ? 0 : -1)
/* The same, for those who return a pointer or NULL. */
#define error_null(error, cap, ...) ((void)error_set(error, cap, __VA_ARGS__), NULL)

/* Prints "program: sentence" on stderr, with a question mark for each byte that controls a terminal: the sentence may
 * quote a file or a peer. False, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool error_say(const char *program, const char *format, ...);
/* The same, for those who return a program's status, 2: it cannot start. */
#define error_status(program, ...) (error_say(program, __VA_ARGS__) ? 0 : 2)

#endif
