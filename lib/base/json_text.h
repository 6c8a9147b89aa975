/* JSON values as text, for records that are written often. */
#pragma once

#include <stddef.h>

#include <jansson.h>

/* Twelve significant digits: microseconds up to eleven days. */
#define JSON_TEXT_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(12))

/* Writes the same text as json_dumpb() with these flags, but faster, because common numbers need no printf. Returns its
 * length; 0 if it does not fit with some bytes to spare, or the value cannot be written. */
size_t json_text(const json_t *value, char *out, size_t size);
