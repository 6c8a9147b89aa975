/* Error messages for the user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the message to error. Returns false, for the caller to return. */
__attribute__((format(printf, 3, 4))) bool error_set(char *error, size_t cap, const char *format, ...);
/* The same for callers that return 0 or -1. */
#define error_code(error, cap, ...) (error_set(error, cap, __VA_ARGS__) ? 0 : -1)
/* The same for callers that return a pointer or NULL. */
#define error_null(error, cap, ...) ((void)error_set(error, cap, __VA_ARGS__), NULL)

/* Prints "program: sentence" on stderr, with a question mark for each control character: the sentence may quote a file
 * or a peer. Returns false, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool error_say(const char *program, const char *format, ...);
/* The same for callers that return a program's exit status, 2. */
#define error_status(program, ...) (error_say(program, __VA_ARGS__) ? 0 : 2)

/* Replaces every byte that is not printable ASCII by '?': text from a peer or a file, for the terminal and the log. */
void make_printable(char *text);
