/* Reading and writing of complete files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reads fd to its end, which may be a pipe, and appends a NUL. The caller frees the result. NULL with errno set; EFBIG:
 * more than `most` bytes. */
char *file_read(int fd, size_t most, size_t *length);
/* The same for a regular file, by name. NULL with errno EINVAL: a pipe or a device, which may never end. */
char *file_read_at(const char *name, size_t most, size_t *length);
/* Returns file_read_at()'s errno in words. */
const char *file_problem(int error);

/* Reads a small file, such as one of /proc, in one piece. False with text "": it cannot be read, or is empty. */
bool file_peek(const char *name, char *text, size_t size);
/* Writes a text to such a file, in one piece. False: it cannot be written. */
bool file_put(const char *name, const char *text);
/* Writes all of it. False with errno set. */
bool file_write(int fd, const void *data, size_t length);
/* Reads a text of at most 1 MiB, such as a certificate, from a file or a pipe. The caller frees the result. NULL with a
 * phrase in error, e.g. "cannot read x.pem: No such file or directory". */
char *text_file_read(const char *file, char *error, size_t error_cap);
