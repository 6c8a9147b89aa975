/* Parses numbers from people and peers: no sign, no blanks and, except in number_parse_real(), no exponent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number of at most 19 digits. */
bool number_parse(const char *text, size_t len, uint64_t *value);
/* A number with at most three decimals, in thousandths: "1.5" gives 1500. A point needs digits on both sides. */
bool number_parse_milli(const char *text, uint64_t *milli);
/* A number with decimals, from 0 to most; an exponent is allowed. */
bool number_parse_real(const char *text, size_t len, double most, double *value);
/* Milliseconds with decimals, from 0 to most; the result is rounded to µs. */
bool number_parse_ms(const char *text, size_t len, double most, uint64_t *us);
bool number_parse_probability(const char *text, size_t len, double *value);

/* The value of a hexadecimal digit of either case; -1 for another character. */
int hex_digit(char c);
/* Reads 2 * length hexadecimal digits. False for any other text, and for NULL. */
bool hex_read(const char *text, uint8_t *bytes, size_t length);
/* Writes 2 * length digits and a NUL. */
void hex_write(const uint8_t *bytes, size_t length, char *out);

/* Writes the digits without a NUL. Returns the position after them. */
static inline char *number_put(char *at, uint64_t value) {
    char *end = at + 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10)
        end++;
    for (char *digit = end; digit > at; value /= 10)
        *--digit = (char)('0' + value % 10);
    return end;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* One step of a hash. */
static inline uint64_t number_mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}
