/* Delivery opportunities over time: a trace in mm-link's format, or a constant rate.
 *
 * A trace has one integer in each line: milliseconds, non-decreasing. Each line is one opportunity to deliver 1504
 * bytes; the trace repeats after its last timestamp, the period. Opportunities are numbered from 0 over all
 * repetitions: number k falls at (k / count) * period + at_ms[k % count] ms.
 *
 * A constant rate of b bit/s has its opportunity number k at (k + 1) * 1504 * 8 / b seconds, rounded up to a whole us:
 * evenly spaced, and exact in the long run. It has no period and no end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_TRACE_MAX_RATE_BPS UINT64_C(1000000000000)

typedef struct {
    uint32_t *at_ms;    /* timestamps, non-decreasing; NULL: a constant rate */
    size_t count;       /* number of timestamps, at least 1 */
    uint32_t period_ms; /* the last timestamp, at least 1 */
    uint64_t rate_bps;  /* the constant rate, at least 1 */
} link_trace;

/* Parses `length` bytes at text; name is the file's name in error messages.
 * Fills trace (the caller frees it with link_trace_free), or returns false with one sentence in error, which names
 * file and line. Blank lines, anything but digits, decreasing values, values beyond 2^32-1, a last value of 0 and an
 * empty text are errors. */
bool link_trace_parse(link_trace *trace, const char *name, const char *text, size_t length, char *error,
                      size_t error_size);
/* A trace of the constant rate, 1 to LINK_TRACE_MAX_RATE_BPS. Owns no memory. */
link_trace link_trace_constant(uint64_t rate_bps);
/* Reads the shorthand of a constant rate: a number, decimals allowed, and bps, kbps, mbps or gbps ("12mbps",
 * "1.5gbps"). False: the text is not a rate, so it names a file. */
bool link_trace_parse_rate(const char *text, uint64_t *rate_bps);
void link_trace_free(link_trace *trace);

/* Returns the time of opportunity number k, in us of trace time. */
uint64_t link_trace_opportunity_us(const link_trace *trace, uint64_t k);
/* Returns how many opportunities are at or before trace time t_us, which is the number of the first one after it. A
 * binary search, in fewer steps if `near`, any number, is slightly below the result. */
uint64_t link_trace_count_near(const link_trace *trace, uint64_t near, uint64_t t_us);
/* For a constant rate: time that rate_bps takes for the passed part of the next opportunity at t_us, rounded. */
uint64_t link_trace_begun_us(const link_trace *trace, uint64_t t_us, uint64_t rate_bps);

/* Loads a trace: `given` if that is a rate, else the file at path `file`, which `given` names in messages. sha256: of
 * the rate's or the file's text, in hex. False with one sentence in error. */
bool link_trace_load(link_trace *trace, char sha256[65], const char *given, const char *file, char *error,
                     size_t error_size);
/* Reads a complete file into *data (NUL-terminated, the caller frees it). False with a sentence in error. */
bool link_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size);
