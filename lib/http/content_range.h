/* Content-Range (RFC 9110 section 14.4). */
#pragma once

#include <string.h>
#include <strings.h>

#include "base/numbers.h"

/* Parses "bytes 0-499/1234"; *total is UINT64_MAX if it is unknown, "*". False: another unit or form. */
static inline bool http_content_range(const char *text, size_t len, uint64_t *first, uint64_t *last, uint64_t *total) {
    if (len < 6 || strncasecmp(text, "bytes ", 6) != 0)
        return false;
    const char *begin = text + 6, *end = text + len;
    const char *dash = memchr(begin, '-', (size_t)(end - begin));
    const char *slash = dash ? memchr(dash, '/', (size_t)(end - dash)) : NULL;
    if (!slash)
        return false;
    *total = UINT64_MAX;
    return number_parse(begin, (size_t)(dash - begin), first) &&
           number_parse(dash + 1, (size_t)(slash - dash - 1), last) &&
           ((slash + 2 == end && slash[1] == '*') || number_parse(slash + 1, (size_t)(end - slash - 1), total)) &&
           *first <= *last && *last < *total;
}
