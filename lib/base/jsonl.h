/* JSON Lines records: one object a line, "t" (seconds since the log's start, six digits) and "event" first. */
#ifndef BASE_JSONL_H
#define BASE_JSONL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

typedef struct jsonl jsonl;

/* Creates (truncates) the file; NULL with errno set. `start_us`: the moment of t = 0 on CLOCK_MONOTONIC. */
jsonl *jsonl_open(const char *file, uint64_t start_us);
/* The same for a file that several processes write to, whole records at a time. worker < 0: the first process, which
 * creates (truncates) it; else the member "worker" of all records. */
jsonl *jsonl_open_shared(const char *file, uint64_t start_us, int worker);
/* The file's size from which on records are left out; 0: no limit. The last one before the gap is "log_full". A pipe or
 * a device has no size. */
void jsonl_limit(jsonl *, uint64_t bytes);
/* Writes a record. `fields`: an object or NULL; its reference is taken. A NULL log takes the reference and drops it. */
void jsonl_write(jsonl *, const char *event, json_t *fields, uint64_t now_us);
/* The first record: "start" with monotonic_us, argv and `fields`. */
void jsonl_write_start(jsonl *, int argc, char *const *argv, json_t *fields);
/* False when a record could not be written completely (a full disk). */
bool jsonl_flush(jsonl *);
bool jsonl_close(jsonl *);

/* Prints an object and a line's end on stdout, at once, and takes its reference. 0, a program's status. */
int jsonl_print(json_t *, size_t flags);
/* A server serves: prints "listening" with `fields` as a line, and writes it as a record. The reference is taken. */
void jsonl_announce(jsonl *, json_t *fields, uint64_t now_us);

/* A microsecond count as a JSON number in seconds. */
json_t *jsonl_seconds(uint64_t us);

#endif
