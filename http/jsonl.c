#include "http/jsonl.h"

#include <stdio.h>
#include <stdlib.h>

#define BUFFER_BYTES ((size_t)1 << 18)

struct jsonl {
    FILE *file;
    uint64_t start_us;
    bool failed;
};

jsonl *jsonl_open(const char *file, uint64_t start_us) {
    jsonl *log = calloc(1, sizeof *log);
    if (log == NULL) {
        return NULL;
    }
    log->file = fopen(file, "we");
    log->start_us = start_us;
    if (log->file == NULL) {
        free(log);
        return NULL;
    }
    setvbuf(log->file, NULL, _IOFBF, BUFFER_BYTES);
    return log;
}

json_t *jsonl_seconds(uint64_t us) {
    return json_real((double)us / 1e6);
}

void jsonl_write(jsonl *log, const char *event, json_t *fields, uint64_t now_us) {
    if (log != NULL) {
        json_t *record = json_object();
        json_object_set_new(record, "t", jsonl_seconds(now_us > log->start_us ? now_us - log->start_us : 0));
        json_object_set_new(record, "event", json_string(event));
        if (fields != NULL) {
            json_object_update(record, fields);
        }
        /* Twelve significant digits: microseconds up to eleven days. */
        if (json_dumpf(record, log->file, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0 ||
            putc('\n', log->file) == EOF) {
            log->failed = true;
        }
        json_decref(record);
    }
    json_decref(fields);
}

void jsonl_write_start(jsonl *log, int argc, char *const *argv, json_t *fields) {
    if (log == NULL) {
        json_decref(fields);
        return;
    }
    json_t *start = json_object(), *arguments = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *text = json_string(argv[i]);
        /* An argument that is not UTF-8 still takes its place. */
        json_array_append_new(arguments, text != NULL ? text : json_string("?"));
    }
    json_object_set_new(start, "monotonic_us", json_integer((json_int_t)log->start_us));
    json_object_set_new(start, "argv", arguments);
    json_object_update(start, fields);
    json_decref(fields);
    jsonl_write(log, "start", start, log->start_us);
}

bool jsonl_flush(jsonl *log) {
    if (log == NULL) {
        return true;
    }
    log->failed |= fflush(log->file) != 0;
    return !log->failed;
}

bool jsonl_close(jsonl *log) {
    if (log == NULL) {
        return true;
    }
    bool ok = jsonl_flush(log);
    ok = fclose(log->file) == 0 && ok;
    free(log);
    return ok;
}
