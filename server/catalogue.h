/* The videos that a server offers, and its answers to requests for them: sans-IO, the same for every HTTP version.
 *
 * Resources are /synthetic/<bytes> (content: video/video.h) and files, which are reached through a table of functions,
 * so the catalogue itself opens nothing. server/files.c has that table; a simulation has none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CATALOGUE_MAX_PATH_BYTES 1024

/* Frame model of videos that the frame index does not list. */
typedef struct {
    uint64_t bitrate_bps;       /* 0: unknown */
    uint32_t fps_milli;         /* frames per 1000 seconds */
    uint64_t first_frame_bytes; /* 0: lib/video/video.h derives it from bit rate and frame rate, if known */
} catalogue_video;

#define CATALOGUE_ABSENT      (-1) /* no such regular file */
#define CATALOGUE_BUSY        (-2) /* the system cannot open another file now */
#define CATALOGUE_RETRY_AFTER "1"  /* value of Retry-After, seconds */

/* Access to files; paths are relative, without "." and ".." segments. */
typedef struct {
    void *user;
    /* Returns a handle >= 0 and the file's size, or CATALOGUE_ABSENT or CATALOGUE_BUSY. Clients may open many responses
     * and read none, so a handle must be cheap: it holds no descriptor, for example. */
    int (*open)(void *user, const char *path, uint64_t *size);
    ssize_t (*read)(void *user, int handle, uint64_t offset, uint8_t *buf,
                    size_t len); /* bytes read; 0 or less: failed */
    void (*close)(void *user, int handle);
} catalogue_files;

typedef struct catalogue catalogue;

/* files may be NULL: only synthetic videos. Returns NULL without memory. */
catalogue *catalogue_new(const catalogue_video *, const catalogue_files *files);
void catalogue_free(catalogue *);
/* Reads a frame index: {"/path": [{"offset": 0, "size": 1234}, …], …}. False: error has a phrase with the line. */
bool catalogue_load_frame_index(catalogue *, const char *json, size_t len, char *error, size_t error_cap);

/* Sets the size of that video's first frame, including the file's headers. False without memory. */
bool catalogue_set_first_frame(catalogue *, const char *target, uint64_t bytes);

/* The body of a response, to be read in order. */
typedef struct {
    const catalogue *owner;
    int handle; /* of catalogue_files; -1: none */
    bool synthetic;
    uint64_t position, end; /* next byte of the resource to return; end of the body */
} catalogue_body;

typedef struct {
    int status;               /* 200, 206, 400, 404, 405, 416, 503 */
    uint64_t resource_bytes;  /* size of the complete resource; 200, 206, 416 */
    uint64_t first, last;     /* range of the body in the resource, inclusive; if content_length > 0 */
    uint64_t content_length;  /* value of Content-Length; a HEAD response has it but no body */
    char content_range[72];   /* value of Content-Range, "" for none; 206, 416 */
    const char *content_type; /* static string */
    bool accept_ranges;       /* send "Accept-Ranges: bytes" */
    bool allow;               /* 405: send "Allow: GET, HEAD" */
    bool retry_after;         /* 503: send "Retry-After: CATALOGUE_RETRY_AFTER" */
    uint64_t frame_position;  /* part of the first video frame in the body: offset from the body's start … */
    uint64_t frame_bytes;     /* … and size; 0: no part */
    catalogue_body body;      /* must always be closed */
} catalogue_response;

/* Decides the answer. range: value of the Range field, NULL for none. Never fails: an error is a status with an empty
 * body. */
void catalogue_respond(catalogue *, const char *method, const char *target, const char *range, catalogue_response *out);

/* Turns the answer into a 503 with Retry-After, for lack of room to send it now, and closes its body. */
void catalogue_refuse(catalogue_response *);

/* Bytes that are not read yet. */
uint64_t catalogue_body_left(const catalogue_body *);
/* Reads up to cap bytes. Returns their number, 0 at the end, or -1 if the file failed or shrank: the stream must then
 * be reset. */
ssize_t catalogue_body_read(catalogue_body *, uint8_t *buf, size_t cap);
void catalogue_body_close(catalogue_body *);
