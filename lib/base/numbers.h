/* Numbers in text that people and peers write: digits only, no sign, no blanks, no exponent. */
#ifndef BASE_NUMBERS_H
#define BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number of at most 19 digits. */
bool number_parse(const char *text, size_t len, uint64_t *value);
/* A number with at most three decimals, as thousandths: "1.5" gives 1500. A point has digits on both sides. */
bool number_parse_milli(const char *text, uint64_t *milli);

#endif
