#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX   19 /* one less than those of UINT64_MAX, so that nothing overflows */
#define DECIMALS_MAX 3
#define REAL_BYTES   40

bool number_parse(const char *text, size_t len, uint64_t *value) {
    uint64_t v = 0;
    if (len == 0 || len > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(text[i] - '0');
    }
    *value = v;
    return true;
}

bool number_parse_milli(const char *text, uint64_t *milli) {
    const size_t whole = strcspn(text, "."), len = strlen(text);
    const size_t decimals = whole < len ? len - whole - 1 : 0;
    char digits[DIGITS_MAX + 1];
    if (whole == 0 || (whole < len && decimals == 0) || decimals > DECIMALS_MAX || whole + DECIMALS_MAX > DIGITS_MAX)
        return false;
    memcpy(digits, text, whole);
    memset(digits + whole, '0', DECIMALS_MAX);
    memcpy(digits + whole, text + whole + (decimals > 0), decimals);
    return number_parse(digits, whole + DECIMALS_MAX, milli);
}

bool number_parse_real(const char *text, size_t len, double most, double *value) {
    char copy[REAL_BYTES], *end;
    if (len == 0 || len >= sizeof copy || ((text[0] < '0' || text[0] > '9') && text[0] != '.'))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strspn(copy, "0123456789.eE+-") != len) /* strtod() accepts more, for example hexadecimal */
        return false;
    const double number = strtod(copy, &end);
    if (end == copy || *end != '\0' || !(number >= 0.0 && number <= most))
        return false;
    *value = number;
    return true;
}

bool number_parse_ms(const char *text, size_t len, double most, uint64_t *us) {
    double ms;
    if (!number_parse_real(text, len, most, &ms))
        return false;
    *us = (uint64_t)llround(ms * 1000.0);
    return true;
}

bool number_parse_probability(const char *text, size_t len, double *value) {
    return number_parse_real(text, len, 1.0, value);
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_read(const char *text, uint8_t *bytes, size_t length) {
    if (!text || strlen(text) != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void hex_write(const uint8_t *bytes, size_t length, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}
