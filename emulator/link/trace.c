#include "emulator/link/trace.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct {
    const char *name;
    const char *at;
    const char *end;
    size_t line;
} cursor;

static bool append(link_trace *trace, size_t *capacity, uint32_t value) {
    if (trace->count == *capacity) {
        size_t wanted = *capacity == 0 ? 1024 : *capacity * 2;
        uint32_t *grown = realloc(trace->at_ms, wanted * sizeof *grown);
        if (!grown)
            return false;
        trace->at_ms = grown;
        *capacity = wanted;
    }
    trace->at_ms[trace->count++] = value;
    return true;
}

/* Describes the problem of the line that starts at the cursor. Returns false. */
static bool refuse_line(const cursor *c, char *error, size_t error_size) {
    const char *newline = memchr(c->at, '\n', (size_t)(c->end - c->at));
    size_t length = (size_t)((!newline ? c->end : newline) - c->at);
    char shown[41];
    if (length == 0)
        return error_set(error, error_size,
                         "%s:%zu: blank line; a trace has one timestamp in ms on every line, remove it", c->name,
                         c->line);
    if (c->at[length - 1] == '\r')
        return error_set(error, error_size, "%s:%zu: the line ends in CR LF; convert the trace to plain newlines",
                         c->name, c->line);
    const size_t n = length < sizeof shown - 1 ? length : sizeof shown - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = c->at[i] >= 0x20 && c->at[i] < 0x7f ? c->at[i] : '?';
    shown[n] = '\0';
    return error_set(
        error, error_size,
        "%s:%zu: \"%s%s\" is not a timestamp; write one whole number of ms (0 to 4294967295) a line, nothing else",
        c->name, c->line, shown, n < length ? "..." : "");
}

#define SHORT_BYTES 8
#define BYTES(n)    (UINT64_C(0x0101010101010101) * (n))

/* Reads a line of one to seven digits and a newline from SHORT_BYTES bytes at once, as most lines of a trace are.
 * Returns its length; 0 if it is anything else. */
static size_t read_short(const char *text, uint32_t *value) {
    uint64_t digits;
    memcpy(&digits, text, sizeof digits);
    digits = le64toh(digits) ^ BYTES('0');
    /* Only a byte that is no digit can carry, and only into later bytes: the digits before it stay right. */
    uint64_t others = (digits | (digits + BYTES(6))) & BYTES(0xf0);
    size_t n = others ? (size_t)__builtin_ctzll(others) / 8 : 0;
    if (n == 0 || text[n] != '\n')
        return 0;
    digits <<= 64 - 8 * n;                /* leading zeros */
    digits = digits * 10 + (digits >> 8); /* two digits in every second byte */
    digits = ((digits & UINT64_C(0x000000ff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
              ((digits >> 16) & UINT64_C(0x000000ff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
             32;
    *value = (uint32_t)digits;
    return n + 1;
}

/* Reads one line of digits; false if it is anything else. */
static bool read_value(cursor *c, uint32_t *value) {
    size_t length = c->end - c->at >= SHORT_BYTES ? read_short(c->at, value) : 0;
    if (length > 0) {
        c->at += length;
        return true;
    }
    const char *p = c->at;
    uint64_t v = 0;
    while (p < c->end && *p >= '0' && *p <= '9') {
        v = v * 10 + (uint64_t)(*p - '0');
        if (v > UINT32_MAX)
            return false;
        p++;
    }
    if (p == c->at || (p < c->end && *p != '\n'))
        return false;
    c->at = p < c->end ? p + 1 : p;
    *value = (uint32_t)v;
    return true;
}

static bool parse_lines(link_trace *trace, cursor *c, char *error, size_t error_size) {
    size_t capacity = 0;
    uint32_t last = 0;
    while (c->at < c->end) {
        uint32_t value;
        c->line++;
        if (!read_value(c, &value))
            return refuse_line(c, error, error_size);
        if (value < last)
            return error_set(error, error_size,
                             "%s:%zu: %u comes after %u; timestamps must not decrease, sort the trace", c->name,
                             c->line, value, last);
        last = value;
        if (!append(trace, &capacity, value))
            return error_set(error, error_size, "%s:%zu: no memory for so long a trace", c->name, c->line);
    }
    return true;
}

bool link_trace_parse(link_trace *trace, const char *name, const char *text, size_t length, char *error,
                      size_t error_size) {
    cursor c = {.name = name, .at = text, .end = text + length, .line = 0};
    memset(trace, 0, sizeof *trace);
    if (length == 0)
        return error_set(error, error_size, "%s:1: the trace is empty; it needs at least one timestamp in ms", name);
    if (!parse_lines(trace, &c, error, error_size)) {
        link_trace_free(trace);
        return false;
    }
    trace->period_ms = trace->at_ms[trace->count - 1];
    if (trace->period_ms > 0)
        return true;
    link_trace_free(trace);
    return error_set(error, error_size,
                     "%s:%zu: the last timestamp is 0; it is the period of the trace and must be at least 1 ms", name,
                     c.line);
}

void link_trace_free(link_trace *trace) {
    free(trace->at_ms);
    memset(trace, 0, sizeof *trace);
}

link_trace link_trace_constant(uint64_t rate_bps) {
    return (link_trace){.rate_bps = rate_bps};
}

bool link_trace_parse_rate(const char *text, uint64_t *rate_bps) {
    static const struct {
        const char *name;
        uint64_t bps;
    } units[] = {{"bps", 1}, {"kbps", 1000}, {"mbps", 1000000}, {"gbps", 1000000000}};
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && whole <= LINK_TRACE_MAX_RATE_BPS; p++)
        whole = whole * 10 + (uint64_t)(*p - '0');
    if (p == text)
        return false;
    if (*p == '.') {
        const char *point = p++;
        for (; *p >= '0' && *p <= '9' && scale < 1000000000; p++) {
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
        if (p == point + 1)
            return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(p, units[i].name) == 0 && whole <= LINK_TRACE_MAX_RATE_BPS / units[i].bps) {
            *rate_bps = whole * units[i].bps + fraction * units[i].bps / scale;
            return *rate_bps > 0 && *rate_bps <= LINK_TRACE_MAX_RATE_BPS;
        }
    }
    return false;
}

/* Opportunity k of a constant rate falls at ceil((k + 1) * US_BITS / rate) us. */
#define US_BITS (UINT64_C(1504) * 8 * 1000000)

/* Products of times and rates take more than 64 bits. */
__extension__ typedef unsigned __int128 wide;

uint64_t link_trace_opportunity_us(const link_trace *trace, uint64_t k) {
    if (!trace->at_ms)
        return (uint64_t)(((wide)(k + 1) * US_BITS + trace->rate_bps - 1) / trace->rate_bps);
    return (k / trace->count * trace->period_ms + trace->at_ms[k % trace->count]) * 1000;
}

static uint64_t count_until_ms(const link_trace *trace, uint64_t near, uint64_t t_ms) {
    uint64_t passed = t_ms / trace->period_ms * trace->count; /* in earlier repetitions */
    uint64_t rest = t_ms % trace->period_ms;
    size_t low = 0;
    size_t high = trace->count; /* the first timestamp greater than rest lies in [low, high] */
    if (near > passed && near - passed < high && trace->at_ms[near - passed - 1] <= rest)
        low = (size_t)(near - passed);
    for (size_t step = 4; step <= high - low; step *= 2) {
        size_t last = low + step - 1;
        if (trace->at_ms[last] > rest) {
            high = last;
            break;
        }
        low = last + 1;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->at_ms[middle] <= rest)
            low = middle + 1;
        else
            high = middle;
    }
    return passed + low;
}

uint64_t link_trace_count_near(const link_trace *trace, uint64_t near, uint64_t t_us) {
    /* ceil((k + 1) * US_BITS / rate) <= t_us if and only if (k + 1) * US_BITS <= t_us * rate. */
    return !trace->at_ms ? (uint64_t)((wide)t_us * trace->rate_bps / US_BITS)
                         : count_until_ms(trace, near, t_us / 1000);
}

uint64_t link_trace_begun_us(const link_trace *trace, uint64_t t_us, uint64_t rate_bps) {
    return ((uint64_t)((wide)t_us * trace->rate_bps % US_BITS) + rate_bps / 2) / rate_bps;
}
