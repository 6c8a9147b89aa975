/* Files in memory. */
#ifndef BASE_TEXT_FILE_H
#define BASE_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* All that fd still has, with a NUL behind it, to be freed; pipes work too. NULL with errno set: EFBIG where it is more
 * than `most` bytes. */
char *file_read(int fd, size_t most, size_t *length);
/* The same of a regular file, by its name. NULL with errno EINVAL where it is a pipe or a device, of which no end need
 * come. */
char *file_read_at(const char *name, size_t most, size_t *length);
/* What errno says after it, in words. */
const char *file_problem(int error);

/* The beginning of a small file, such as those of /proc, as a text; "" where there is none. False: there is none. */
bool file_peek(const char *name, char *text, size_t size);
/* Writes all of it. False with errno set. */
bool file_write(int fd, const void *data, size_t length);
/* A small text, such as a certificate or a key, to be freed; pipes work too. NULL with one phrase in error, e.g.
 * "cannot read x.pem: No such file or directory"; a file of more than a mebibyte is refused too. */
char *text_file_read(const char *file, char *error, size_t error_cap);

#endif
