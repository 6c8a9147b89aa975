/* The link's log in mm-link's text format, batched. Times (T) are ms since the start of the links.
 *
 *   # mahimahi mm-link (Uplink) [trace] > log        T # bytes         an opportunity
 *   # command line: ...                              T + bytes         a packet arrives at the queue
 *   # queue: droptail [packets=100]                  T - bytes delay   a packet departs, delay ms after its arrival
 *   # init timestamp: <ms since 1970>                T d packets bytes packets dropped by the queue
 *   # base timestamp: 0
 *
 * With Wi-Fi, # is the end of a transmission, with the bytes that arrived, and d also a packet that was given up.
 *
 * Others' traffic (cross.h) has lines of its own, so that no sum over the lines above counts it:
 *
 *   T c bytes          a packet arrives at the queue       T s bytes          a packet was served
 *   T x packets bytes  packets dropped by the queue
 *
 * Departures have the actual time, not the scheduled one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Receives complete lines, many at a time. The text is valid during the call only. */
typedef void link_log_sink(void *context, const char *text, size_t length);

typedef struct {
    link_log_sink *sink;
    void *context;
    size_t used;
    char buffer[32768];
} link_log;

/* The lines of numbers. */
typedef enum {
    LINK_LOG_OPPORTUNITY = '#',
    LINK_LOG_ARRIVAL = '+',
    LINK_LOG_DEPARTURE = '-',
    LINK_LOG_DROP = 'd',
    LINK_LOG_CROSS_ARRIVAL = 'c',
    LINK_LOG_CROSS_DEPARTURE = 's',
    LINK_LOG_CROSS_DROP = 'x',
} link_log_kind;

void link_log_init(link_log *log, link_log_sink *sink, void *context);
/* Writes the opening comment lines. direction is "Uplink" or "Downlink"; newlines in the texts become spaces. */
void link_log_header(link_log *log, const char *direction, const char *trace, const char *log_name,
                     const char *command_line, const char *queue, uint64_t init_epoch_ms);
void link_log_put(link_log *log, uint64_t t_ms, link_log_kind kind, uint64_t a, bool has_b, uint64_t b);
/* Writes "T kind a", or "T kind a b". Without a log (NULL) nothing. */
static inline void link_log_line(link_log *log, uint64_t t_ms, link_log_kind kind, uint64_t a) {
    if (log)
        link_log_put(log, t_ms, kind, a, false, 0);
}
static inline void link_log_line2(link_log *log, uint64_t t_ms, link_log_kind kind, uint64_t a, uint64_t b) {
    if (log)
        link_log_put(log, t_ms, kind, a, true, b);
}
/* Passes buffered lines to the sink. */
void link_log_flush(link_log *log);
