#include "emulator/link/log.h"

#include "base/numbers.h"

#define LONGEST_LINE 80u /* three 64-bit numbers and their separators */

void link_log_init(link_log *log, link_log_sink *sink, void *context) {
    log->sink = sink;
    log->context = context;
    log->used = 0;
}

void link_log_flush(link_log *log) {
    if (log->used > 0) {
        log->sink(log->context, log->buffer, log->used);
        log->used = 0;
    }
}

/* By hand, because lines are the hot path of a busy link. */
void link_log_put(link_log *log, uint64_t t_ms, link_log_kind kind, uint64_t a, bool has_b, uint64_t b) {
    if (log->used + LONGEST_LINE > sizeof log->buffer)
        link_log_flush(log);
    char *at = number_put(log->buffer + log->used, t_ms);
    *at++ = ' ';
    *at++ = (char)kind;
    *at++ = ' ';
    at = number_put(at, a);
    if (has_b) {
        *at++ = ' ';
        at = number_put(at, b);
    }
    *at++ = '\n';
    log->used = (size_t)(at - log->buffer);
}

static void put_text(link_log *log, const char *text) {
    for (; *text != '\0'; text++) {
        if (log->used == sizeof log->buffer)
            link_log_flush(log);
        log->buffer[log->used++] = *text == '\n' || *text == '\r' ? ' ' : *text;
    }
}

static void end_line(link_log *log) {
    if (log->used == sizeof log->buffer)
        link_log_flush(log);
    log->buffer[log->used++] = '\n';
}

void link_log_header(link_log *log, const char *direction, const char *trace, const char *log_name,
                     const char *command_line, const char *queue, uint64_t init_epoch_ms) {
    put_text(log, "# mahimahi mm-link (");
    put_text(log, direction);
    put_text(log, ") [");
    put_text(log, trace);
    put_text(log, "] > ");
    put_text(log, log_name);
    end_line(log);
    put_text(log, "# command line: ");
    put_text(log, command_line);
    end_line(log);
    put_text(log, "# queue: ");
    put_text(log, queue);
    end_line(log);
    put_text(log, "# init timestamp: ");
    if (log->used + LONGEST_LINE > sizeof log->buffer)
        link_log_flush(log);
    log->used = (size_t)(number_put(log->buffer + log->used, init_epoch_ms) - log->buffer);
    end_line(log);
    put_text(log, "# base timestamp: 0");
    end_line(log);
}
