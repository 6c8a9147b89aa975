/* A sink of qlogs that checks that each record is one JSON object (RFC 7464). */
#pragma once

#include <jansson.h>

#include "tests/fuzz/input.h"
#include "qlog/qlog.h"

#define FUZZ_QLOG_SINKS 64

typedef struct {
    bool is_open;
    uint64_t records;
} fuzz_qlog_sink;

typedef struct {
    fuzz_qlog_sink sink[FUZZ_QLOG_SINKS];
    size_t count; /* sinks opened so far */
    uint64_t records;
} fuzz_qlog;

static inline void fuzz_qlog_init(fuzz_qlog *log) {
    memset(log, 0, sizeof *log);
}

static inline void *fuzz_qlog_open(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len) {
    fuzz_qlog *log = user;
    (void)is_server;
    FUZZ_CHECK(odcid_len <= XL_MAX_CID_BYTES);
    fuzz_note(odcid, odcid_len);
    if (log->count == FUZZ_QLOG_SINKS)
        return NULL;
    log->sink[log->count].is_open = true;
    return &log->sink[log->count++];
}

/* Takes complete records. */
static inline void fuzz_qlog_write(void *user, const char *text, size_t len) {
    fuzz_qlog_sink *sink = user;
    FUZZ_CHECK(sink->is_open && len > 0 && text[len - 1] == '\n');
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = (size_t)(end - text);
        FUZZ_CHECK(n > 1 && text[0] == 0x1e);
        json_error_t error;
        json_t *record = json_loadb(text + 1, n - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        if (!record)
            fprintf(stderr, "%s at %d of: %.*s\n", error.text, error.position, (int)(n - 1), text + 1);
        FUZZ_CHECK(json_is_object(record));
        FUZZ_CHECK(sink->records == 0 || (json_is_number(json_object_get(record, "time")) &&
                                          json_is_string(json_object_get(record, "name"))));
        json_decref(record);
        fuzz_note(text, n);
        sink->records++;
        text = end + 1;
        len -= n + 1;
    }
}

static inline void fuzz_qlog_close(void *user) {
    fuzz_qlog_sink *sink = user;
    FUZZ_CHECK(sink->is_open && sink->records > 0);
    sink->is_open = false;
}

static inline xl_log fuzz_qlog_log(fuzz_qlog *log) {
    return (xl_log){
        .user = log, .qlog_open = fuzz_qlog_open, .qlog_write = fuzz_qlog_write, .qlog_close = fuzz_qlog_close};
}

/* Checks that all sinks are closed. */
static inline void fuzz_qlog_free(fuzz_qlog *log) {
    for (size_t i = 0; i < log->count; i++)
        FUZZ_CHECK(!log->sink[i].is_open);
}
