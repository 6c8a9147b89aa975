#include "base/jsonl.h"

#include "base/error.h"
#include "base/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)1 << 18)
#define LINE_BYTES   1024

struct jsonl {
    FILE *file;
    uint64_t start_us;
    bool failed, shared, is_full;
    int reason;     /* errno of the first failure */
    uint64_t limit; /* of the file's size, bytes; 0: none */
    int worker;     /* member "worker"; < 0: none */
};

static jsonl *open_log(const char *file, const char *mode, uint64_t start_us) {
    jsonl *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->file = fopen(file, mode);
    log->start_us = start_us;
    log->worker = -1;
    if (!log->file) {
        free(log);
        return NULL;
    }
    setvbuf(log->file, NULL, _IOFBF, BUFFER_BYTES);
    return log;
}

jsonl *jsonl_open(const char *file, uint64_t start_us) {
    return open_log(file, "we", start_us);
}

jsonl *jsonl_open_shared(const char *file, uint64_t start_us, int worker) {
    if (worker < 0 && !jsonl_close(jsonl_open(file, start_us)))
        return NULL;
    jsonl *log = open_log(file, "ae", start_us);
    if (log) {
        log->shared = true;
        log->worker = worker;
    }
    return log;
}

json_t *jsonl_seconds(uint64_t us) {
    return json_real((double)us / 1e6);
}

void jsonl_limit(jsonl *log, uint64_t bytes) {
    if (log) {
        log->limit = bytes;
        log->is_full = false;
    }
}

static void check(jsonl *log, bool is_done) {
    if (is_done || log->failed)
        return;
    log->failed = true;
    log->reason = errno;
}

/* For a line of more than LINE_BYTES, or one that json_text() cannot write. */
static bool put_long_line(FILE *file, json_t *head, json_t *fields) {
    return (!fields || json_object_update(head, fields) == 0) && json_dumpf(head, file, JSON_TEXT_FLAGS) == 0 &&
           putc('\n', file) != EOF;
}

/* Writes a line in one piece if it is short, as most are. The two objects become one: a comma replaces the "}{"
 * between their texts. */
static bool put_line(FILE *file, json_t *head, json_t *fields) {
    char line[LINE_BYTES];
    size_t bytes = json_text(head, line, sizeof line - 1);
    if (bytes > 0 && json_object_size(fields) > 0) {
        size_t more = json_text(fields, line + bytes - 1, sizeof line - bytes);
        line[bytes - 1] = ',';
        bytes = more > 0 ? bytes - 1 + more : 0;
    }
    if (bytes == 0)
        return put_long_line(file, head, fields);
    line[bytes] = '\n';
    return fwrite(line, 1, bytes + 1, file) == bytes + 1;
}

static void write_record(jsonl *log, const char *event, json_t *fields, uint64_t now_us) {
    json_t *head = json_object();
    json_object_set_new(head, "t", jsonl_seconds(now_us > log->start_us ? now_us - log->start_us : 0));
    json_object_set_new(head, "event", json_string(event));
    if (log->worker >= 0)
        json_object_set_new(head, "worker", json_integer(log->worker));
    check(log, put_line(log->file, head, fields));
    if (log->shared) /* one append per record, so that records do not mix */
        check(log, fflush(log->file) == 0);
    json_decref(head);
}

void jsonl_write(jsonl *log, const char *event, json_t *fields, uint64_t now_us) {
    if (log && !log->is_full) {
        write_record(log, event, fields, now_us);
        log->is_full = log->limit > 0 && ftello(log->file) >= (off_t)log->limit;
        if (log->is_full)
            write_record(log, "log_full", json_pack("{s:I}", "bytes", (json_int_t)log->limit), now_us);
    }
    json_decref(fields);
}

void jsonl_write_start(jsonl *log, int argc, char *const *argv, json_t *fields) {
    if (!log) {
        json_decref(fields);
        return;
    }
    json_t *start = json_object(), *arguments = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *text = json_string(argv[i]);
        /* An argument that is not UTF-8 is written as "?". */
        json_array_append_new(arguments, text ? text : json_string("?"));
    }
    json_object_set_new(start, "monotonic_us", json_integer((json_int_t)log->start_us));
    json_object_set_new(start, "argv", arguments);
    json_object_update(start, fields);
    json_decref(fields);
    jsonl_write(log, "start", start, log->start_us);
}

bool jsonl_flush(jsonl *log) {
    if (!log)
        return true;
    check(log, fflush(log->file) == 0);
    return !log->failed;
}

bool jsonl_close(jsonl *log) {
    if (!log)
        return true;
    (void)jsonl_flush(log);
    check(log, fclose(log->file) == 0);
    const bool ok = !log->failed;
    errno = ok ? errno : log->reason;
    free(log);
    return ok;
}

int jsonl_end(jsonl *log, const char *program, const char *file, int status) {
    if (jsonl_close(log))
        return status;
    error_say(program, "cannot write %s to its end: %s.", file, strerror(errno));
    return status != 0 ? status : 1;
}

int jsonl_print(json_t *o, size_t flags) {
    json_dumpf(o, stdout, flags);
    putchar('\n');
    fflush(stdout);
    json_decref(o);
    return 0;
}

void jsonl_announce(jsonl *log, json_t *fields, uint64_t now_us) {
    json_t *line = json_pack("{s:s}", "event", "listening");
    json_object_update(line, fields);
    jsonl_print(line, JSON_COMPACT);
    jsonl_write(log, "listening", fields, now_us);
}
