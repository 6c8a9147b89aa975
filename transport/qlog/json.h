/* Writes JSON text into a fixed buffer, without printf, because the log is written for every packet. Text that does not
 * fit sets `overflow`; from then on nothing is written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    char *p;
    size_t used, cap;
    bool overflow;
} xl_json;

/* Appends the bytes verbatim. Inline, so that the compiler computes the length of a literal and copies it. */
static inline void xl_json_bytes(xl_json *j, const char *bytes, size_t n) {
    if (j->overflow || j->cap - j->used < n) {
        j->overflow = true;
        return;
    }
    memcpy(j->p + j->used, bytes, n);
    j->used += n;
}

/* Checks the room for text that is put without further checks. False: nothing is written from now on. */
static inline bool xl_json_has_room(xl_json *j, size_t n) {
    j->overflow |= j->cap - j->used < n;
    return !j->overflow;
}

static inline void xl_json_text(xl_json *j, const char *text) {
    xl_json_bytes(j, text, strlen(text));
}

/* "name": with a comma before it if `comma`. `name` is a literal, see above. */
static inline __attribute__((always_inline)) void xl_json_member(xl_json *j, const char *name, bool comma) {
    const size_t n = strlen(name);
    if (j->overflow || j->cap - j->used < n + 4) {
        j->overflow = true;
        return;
    }
    char *at = j->p + j->used;
    if (comma)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, name, n);
    memcpy(at + n, "\":", 2);
    j->used = (size_t)(at + n + 2 - j->p);
}

#define XL_JSON_DIGITS 20 /* of 64 bits */

/* Writes the digits of v to `at`, which must have room for XL_JSON_DIGITS. Returns their end. */
char *xl_json_put_long_u64(char *at, uint64_t v);

static inline char *xl_json_put_u64(char *at, uint64_t v) {
    if (v >= 10)
        return xl_json_put_long_u64(at, v);
    *at = (char)('0' + v);
    return at + 1;
}

/* Copies a literal to `at`, which must have room for it. */
static inline __attribute__((always_inline)) char *xl_json_put(char *at, const char *text) {
    const size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

char *xl_json_put_ms(char *at, uint64_t us); /* as xl_json_ms(); needs room for XL_JSON_DIGITS + 1 */

static inline void xl_json_u64(xl_json *j, uint64_t v) {
    char digits[XL_JSON_DIGITS];
    if (j->overflow || j->cap - j->used < XL_JSON_DIGITS)
        xl_json_bytes(j, digits, (size_t)(xl_json_put_u64(digits, v) - digits));
    else
        j->used = (size_t)(xl_json_put_u64(j->p + j->used, v) - j->p);
}

void xl_json_ms(xl_json *, uint64_t us); /* microseconds as milliseconds: 1500 -> 1.500 */
void xl_json_hex(xl_json *, const uint8_t *, size_t n);
/* Writes at most XL_JSON_STRING_MAX bytes of the string, quoted and escaped. Invalid UTF-8 becomes U+FFFD (RFC 8259
 * section 8.1). */
#define XL_JSON_STRING_MAX 1024
void xl_json_string(xl_json *, const char *, size_t n);
