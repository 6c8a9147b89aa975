/* Packet delivery traces in mm-link's format: one integer a line, milliseconds, non-decreasing. Each line is one
 * opportunity to deliver 1504 bytes; the trace repeats after its last timestamp, the period.
 *
 * Opportunities are numbered from 0 over all repetitions: number k falls at (k / count) * period + at_ms[k % count]. */
#ifndef RAILYARD_LINK_TRACE_H
#define RAILYARD_LINK_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct xl_trace {
    uint32_t *at_ms;    /* the timestamps, non-decreasing */
    size_t count;       /* at least 1 */
    uint32_t period_ms; /* the last timestamp, at least 1 */
};

/* Parses the length bytes at text; name stands for the file in error messages.
 * Returns 0 and fills trace (the caller frees it with xl_trace_free), or -1 and one sentence in error, which names
 * file and line. Blank lines, anything but digits, decreasing values, values beyond 2^32-1, a last value of 0 and an
 * empty text are errors. */
int xl_trace_parse(struct xl_trace *trace, const char *name, const char *text, size_t length, char *error,
                   size_t error_size);
void xl_trace_free(struct xl_trace *trace);

/* The time of opportunity number k, in ms of trace time. */
uint64_t xl_trace_opportunity_ms(const struct xl_trace *trace, uint64_t k);
/* How many opportunities fall at or before trace time t_ms; also the number of the first one after it.
 * Arithmetic and a binary search, however far t_ms is. */
uint64_t xl_trace_count_until(const struct xl_trace *trace, uint64_t t_ms);

/* Reads a whole file into *data (NUL-terminated, the caller frees it). Returns 0, or -1 and one sentence in error. */
int xl_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size);

#endif
