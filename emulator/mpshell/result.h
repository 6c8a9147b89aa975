/* A file that mpshell writes after COMMAND has ended. COMMAND may run as another user and write to the same folder:
 * whatever it puts there under the name, mpshell does not write to another file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *what; /* for messages: "summary" */
    const char *path; /* as given, owned by the caller; NULL: no file is wanted */
    const char *name; /* last part of path */
    int folder;       /* the folder of name; -1: file is open instead */
    int file;         /* a device, a pipe, or the target of a link; -1: a file `name` is made or replaced */
} mp_result;

/* Opens the folder or file; path NULL: no file is wanted. Call it before COMMAND starts. False with a sentence in
 * error. */
bool mp_result_open(mp_result *result, const char *what, const char *path, char *error);
/* Writes the text, if a file is wanted; a regular file under another name, then renamed, so that it is complete. False
 * with a sentence in error. */
bool mp_result_write(const mp_result *result, const char *text, size_t length, char *error);
void mp_result_close(mp_result *result); /* allowed if there is none */

/* open() for writing, which creates the file if needed. Follows a link only if root or this process's user owns it.
 * Fails with ELOOP for a link of another user, who may want mpshell to write elsewhere. */
int mp_output_open(const char *path, int flags);
