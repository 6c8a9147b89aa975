#include "get/summary.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#define NUMBER_BYTES 32

/* Writes a value with three significant digits and a unit: "1.43 MB". */
static void number_text(double value, const char *unit, char text[NUMBER_BYTES]) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    size_t i = 0;
    while (value >= 999.5 && i + 1 < sizeof prefixes / sizeof prefixes[0]) {
        value /= 1000;
        i++;
    }
    const int digits = i == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, NUMBER_BYTES, "%.*f %s%s", digits, value, prefixes[i], unit);
}

__attribute__((format(printf, 3, 4))) static size_t append(char *text, size_t at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text + at, GET_SUMMARY_BYTES - at, format, args);
    va_end(args);
    return n > 0 && at + (size_t)n < GET_SUMMARY_BYTES ? at + (size_t)n : GET_SUMMARY_BYTES - 1;
}

void get_summary_text(const get_summary *s, char text[GET_SUMMARY_BYTES]) {
    char size[NUMBER_BYTES], rate[NUMBER_BYTES], address[64];
    const double seconds = (double)s->us / 1e6;
    size_t at = 0;
    number_text((double)s->bytes, "B", size);
    number_text(s->us ? 8.0 * (double)s->bytes / seconds : 0, "bit/s", rate);
    if (s->complete < s->count)
        at = append(text, at, "%zu of ", s->complete);
    at = append(text, at, "%zu file%s, %s in %.2f s, %s, over %zu path%s", s->count, s->count == 1 ? "" : "s", size,
                seconds, rate, s->paths, s->paths == 1 ? "" : "s");
    for (size_t i = 0; i < s->paths; i++) {
        number_text((double)s->received[i], "B", size);
        const char *ip =
            inet_ntop(s->local[i].family == 6 ? AF_INET6 : AF_INET, s->local[i].ip, address, sizeof address);
        at = append(text, at, "%s %s by %s", i == 0 ? ":" : ",", size, ip ? ip : "?");
    }
}
