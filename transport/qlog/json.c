#include "qlog/json.h"

static unsigned digits_of(uint64_t v) {
    static const uint64_t powers[] = {UINT64_C(0),
                                      UINT64_C(10),
                                      UINT64_C(100),
                                      UINT64_C(1000),
                                      UINT64_C(10000),
                                      UINT64_C(100000),
                                      UINT64_C(1000000),
                                      UINT64_C(10000000),
                                      UINT64_C(100000000),
                                      UINT64_C(1000000000),
                                      UINT64_C(10000000000),
                                      UINT64_C(100000000000),
                                      UINT64_C(1000000000000),
                                      UINT64_C(10000000000000),
                                      UINT64_C(100000000000000),
                                      UINT64_C(1000000000000000),
                                      UINT64_C(10000000000000000),
                                      UINT64_C(100000000000000000),
                                      UINT64_C(1000000000000000000),
                                      UINT64_C(10000000000000000000)};
    /* 1233 / 4096 is nearly log10(2). */
    const unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), n = bits * 1233 >> 12;
    return n + (v >= powers[n]);
}

/* Writes two digits at a time, from the last ones on. */
char *xl_json_put_long_u64(char *at, uint64_t v) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char *const end = at + digits_of(v);
    char *digit = end;
    for (; v >= 100; v /= 100)
        memcpy(digit -= 2, pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(digit - 2, pairs + 2 * v, 2);
    else
        digit[-1] = (char)('0' + v);
    return end;
}

char *xl_json_put_ms(char *at, uint64_t us) {
    const unsigned part = (unsigned)(us % 1000);
    at = xl_json_put_u64(at, us / 1000);
    const char fraction[4] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10), (char)('0' + part % 10)};
    memcpy(at, fraction, sizeof fraction);
    return at + sizeof fraction;
}

void xl_json_ms(xl_json *j, uint64_t us) {
    char text[XL_JSON_DIGITS + 1];
    xl_json_bytes(j, text, (size_t)(xl_json_put_ms(text, us) - text));
}

static const char hex_digits[] = "0123456789abcdef";

void xl_json_hex(xl_json *j, const uint8_t *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char pair[2] = {hex_digits[data[i] >> 4], hex_digits[data[i] & 15]};
        xl_json_bytes(j, pair, sizeof pair);
    }
}

/* Length of the UTF-8 character at s, 0 if it is malformed, overlong, a surrogate or above U+10FFFF (RFC 3629). */
static size_t utf8_char_len(const uint8_t *s, size_t n) {
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool malformed = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
                     (s[0] == 0xf4 && s[1] > 0x8f);
    return malformed ? 0 : len;
}

void xl_json_string(xl_json *j, const char *string, size_t n) {
    const uint8_t *s = (const uint8_t *)string;
    n = n < XL_JSON_STRING_MAX ? n : XL_JSON_STRING_MAX;
    xl_json_text(j, "\"");
    for (size_t i = 0; i < n;) {
        size_t len = utf8_char_len(s + i, n - i);
        if (len == 0) {
            xl_json_text(j, "\\ufffd");
            len = 1;
        } else if (s[i] < 0x20) {
            const char escaped[6] = {'\\', 'u', '0', '0', hex_digits[s[i] >> 4], hex_digits[s[i] & 15]};
            xl_json_bytes(j, escaped, sizeof escaped);
        } else {
            if (s[i] == '"' || s[i] == '\\')
                xl_json_text(j, "\\");
            xl_json_bytes(j, string + i, len);
        }
        i += len;
    }
    xl_json_text(j, "\"");
}
