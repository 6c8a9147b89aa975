#include "base/json_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_DIGITS 20 /* of 64 bits */

typedef struct {
    char *at, *end;
} text;

static bool put(text *t, const char *bytes, size_t n) {
    if ((size_t)(t->end - t->at) < n)
        return false;
    memcpy(t->at, bytes, n);
    t->at += n;
    return true;
}

/* For rare values, and texts with characters to escape. */
static bool put_by_library(text *t, const json_t *value) {
    size_t room = (size_t)(t->end - t->at), n = json_dumpb(value, t->at, room, JSON_TEXT_FLAGS | JSON_ENCODE_ANY);
    if (n == 0 || n > room)
        return false;
    t->at += n;
    return true;
}

static bool put_digits(text *t, uint64_t v, size_t least) {
    char digits[MOST_DIGITS];
    size_t at = sizeof digits;
    for (; v > 0 || sizeof digits - at < least; v /= 10)
        digits[--at] = (char)('0' + v % 10);
    return put(t, digits + at, sizeof digits - at);
}

static bool put_integer(text *t, json_int_t v) {
    return v < 0 ? put(t, "-", 1) && put_digits(t, -(uint64_t)v, 1) : put_digits(t, (uint64_t)v, 1);
}

/* Writes numbers of at most twelve digits and six decimals itself, without trailing zeros. */
static bool put_real(text *t, const json_t *value) {
    double v = json_real_value(value);
    if (v == 0 && !signbit(v))
        return put(t, "0.0", 3);
    uint64_t millionths = v >= 1e-4 && v < 1e6 ? (uint64_t)(v * 1e6 + 0.5) : 0;
    if (millionths == 0 || (double)millionths / 1e6 != v)
        return put_by_library(t, value);
    if (!put_digits(t, millionths / 1000000, 1) || !put(t, ".", 1) || !put_digits(t, millionths % 1000000, 6))
        return false;
    while (t->at[-1] == '0' && t->at[-2] != '.')
        t->at--;
    return true;
}

static bool is_plain(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

static bool put_quoted(text *t, const char *s, size_t n) {
    return put(t, "\"", 1) && put(t, s, n) && put(t, "\"", 1);
}

static bool put_string(text *t, const json_t *value) {
    const char *s = json_string_value(value);
    size_t n = json_string_length(value);
    return is_plain(s, n) ? put_quoted(t, s, n) : put_by_library(t, value);
}

static bool put_value(text *t, const json_t *value);

/* Names of members come from the program and need no escaping. */
static bool put_object(text *t, json_t *object) {
    const char *name;
    json_t *value;
    bool is_first = true;
    if (!put(t, "{", 1))
        return false;
    json_object_foreach(object, name, value) {
        if ((!is_first && !put(t, ",", 1)) || !put_quoted(t, name, strlen(name)) || !put(t, ":", 1) ||
            !put_value(t, value))
            return false;
        is_first = false;
    }
    return put(t, "}", 1);
}

static bool put_value(text *t, const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return put_object(t, (json_t *)(uintptr_t)value);
    case JSON_STRING:
        return put_string(t, value);
    case JSON_INTEGER:
        return put_integer(t, json_integer_value(value));
    case JSON_REAL:
        return put_real(t, value);
    case JSON_TRUE:
        return put(t, "true", 4);
    case JSON_FALSE:
        return put(t, "false", 5);
    case JSON_NULL:
        return put(t, "null", 4);
    default:
        return put_by_library(t, value);
    }
}

size_t json_text(const json_t *value, char *out, size_t size) {
    text t = {out, out + size};
    return put_value(&t, value) ? (size_t)(t.at - out) : 0;
}
