/* A file that mpshell writes after COMMAND has ended. COMMAND may be another user's and write to the same folder: what
 * it leaves under the name leads mpshell to no other file. */
#ifndef RAILYARD_MPSHELL_RESULT_H
#define RAILYARD_MPSHELL_RESULT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *path; /* as it was given; the caller's. NULL: none was asked for */
    const char *name; /* the last part of path */
    int folder;       /* where name is; -1 where file is open */
    int file;         /* a device, a pipe, or where a link leads; -1: a file of that name is made or replaced */
} mp_result;

/* Finds the place before COMMAND starts. False with errno set. */
bool mp_result_open(mp_result *result, const char *path);
/* A file is written beside and renamed, so that it is complete or not there. False with errno set. */
bool mp_result_write(const mp_result *result, const char *text, size_t length);
void mp_result_close(mp_result *result); /* fine where there is none */

/* open() for writing; makes the file where there is none. A link is followed if it is root's or this process's user's;
 * of another user's, who may have put it there for us to write elsewhere, it fails with ELOOP. */
int mp_output_open(const char *path, int flags);

#endif
