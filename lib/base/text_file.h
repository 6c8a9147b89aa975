/* Small text files, read whole: certificates, keys. */
#ifndef BASE_TEXT_FILE_H
#define BASE_TEXT_FILE_H

#include <stddef.h>

/* The text with a NUL behind it, to be freed. NULL with one phrase in error, e.g. "cannot read x.pem: No such file or
 * directory"; a file of more than a mebibyte is refused too. */
char *text_file_read(const char *file, char *error, size_t error_cap);

#endif
