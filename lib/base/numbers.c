#include "base/numbers.h"

#include <string.h>

#define DIGITS_MAX   19 /* UINT64_MAX has 20 */
#define DECIMALS_MAX 3

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
