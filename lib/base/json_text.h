/* JSON values as text, for records that are written often. */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* Twelve significant digits: microseconds up to eleven days. */
#define JSON_TEXT_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(12))

/* The text that json_dumpb() writes with these flags, but faster: no number is written by printf.
 * Returns its length; 0 if size is not some bytes more than that, or the value cannot be written. */
size_t json_text(const json_t *value, char *out, size_t size);

#endif
