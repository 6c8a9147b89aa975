/* JSON Lines records: one object a line, "t" (seconds since the log's start, six digits) and "event" first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

typedef struct jsonl jsonl;

/* Creates or truncates the file. Returns NULL with errno set on failure. `start_us`: CLOCK_MONOTONIC at t = 0. */
jsonl *jsonl_open(const char *file, uint64_t start_us);
/* The same for a file that several processes append to, one complete record at a time. worker < 0: the first process,
 * which creates or truncates the file; else the member "worker" of its records. */
jsonl *jsonl_open_shared(const char *file, uint64_t start_us, int worker);
/* Sets the file size at which a last record "log_full" is written and further ones are left out; 0: no limit. It has no
 * effect on a pipe or a device. */
void jsonl_limit(jsonl *, uint64_t bytes);
/* Writes a record, unless the log is NULL. `fields`: an object or NULL; takes its reference. */
void jsonl_write(jsonl *, const char *event, json_t *fields, uint64_t now_us);
/* The first record: "start" with monotonic_us, argv and `fields`. */
void jsonl_write_start(jsonl *, int argc, char *const *argv, json_t *fields);
/* False: a record could not be written completely, for example because the disk is full. jsonl_close() then sets errno
 * to the reason of the first such record. */
bool jsonl_flush(jsonl *);
bool jsonl_close(jsonl *);
/* Closes a program's log and says on stderr if it is incomplete. Returns the exit status, then 1 instead of 0. */
int jsonl_end(jsonl *, const char *program, const char *file, int status);

/* Prints an object and a line end on stdout, flushes it and takes the object's reference. Returns 0, an exit status. */
int jsonl_print(json_t *, size_t flags);
/* Announces that a server is ready: prints and records "listening" with `fields`, whose reference it takes. */
void jsonl_announce(jsonl *, json_t *fields, uint64_t now_us);

/* Converts microseconds to a JSON number in seconds. */
json_t *jsonl_seconds(uint64_t us);
