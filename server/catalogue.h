/* The videos that a server offers and how it answers a request for one: sans-IO, the same for every HTTP version.
 *
 * Resources are /synthetic/<bytes> (content by video/video.h) and files, which are reached through a table of functions
 * so that the catalogue itself opens nothing (server/files.c gives the real one; a simulation gives none). */
#ifndef SERVER_CATALOGUE_H
#define SERVER_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CATALOGUE_MAX_PATH_BYTES 1024

/* Frame model of videos that the frame index does not list. */
typedef struct {
    uint64_t bitrate_bps;       /* 0: not known */
    uint32_t fps_milli;         /* frames per 1000 seconds */
    uint64_t first_frame_bytes; /* 0: lib/video/video.h derives it from bit rate and frame rate, if known */
} catalogue_video;

#define CATALOGUE_ABSENT      (-1) /* there is no such regular file */
#define CATALOGUE_BUSY        (-2) /* the system has no room to open it now */
#define CATALOGUE_RETRY_AFTER "1"  /* value of Retry-After, seconds */

/* Access to files; paths are relative, without "." and ".." segments. */
typedef struct {
    void *user;
    /* A handle >= 0 and the file's size, or one of the two above. The handle holds as little as a response may that
     * nobody reads: no descriptor, for example. */
    int (*open)(void *user, const char *path, uint64_t *size);
    ssize_t (*read)(void *user, int handle, uint64_t offset, uint8_t *buf, size_t len); /* < 0 or 0: failed */
    void (*close)(void *user, int handle);
} catalogue_files;

typedef struct catalogue catalogue;

/* files may be NULL: only synthetic videos then. NULL when memory is short. */
catalogue *catalogue_new(const catalogue_video *, const catalogue_files *files);
void catalogue_free(catalogue *);
/* Reads a frame index: {"/path": [{"offset": 0, "size": 1234}, …], …}. False with one phrase, line included, in error.
 */
bool catalogue_load_frame_index(catalogue *, const char *json, size_t len, char *error, size_t error_cap);

/* The first frame of that video, headers included, is its first `bytes` bytes; false when memory is short. */
bool catalogue_set_first_frame(catalogue *, const char *target, uint64_t bytes);

/* The body of a response; read it in order. */
typedef struct {
    const catalogue *owner;
    int handle; /* of catalogue_files; -1: none */
    bool synthetic;
    uint64_t position, end; /* next byte of the resource to hand out; one past the last */
} catalogue_body;

typedef struct {
    int status;               /* 200, 206, 400, 404, 405, 416, 503 */
    uint64_t resource_bytes;  /* size of the whole resource; 200, 206, 416 */
    uint64_t first, last;     /* range of the body in the resource, inclusive; when content_length > 0 */
    uint64_t content_length;  /* value of Content-Length; a HEAD response has it but no body */
    char content_range[72];   /* value of Content-Range, "" for none; 206, 416 */
    const char *content_type; /* static string */
    bool accept_ranges;       /* send "Accept-Ranges: bytes" */
    bool allow;               /* 405: send "Allow: GET, HEAD" */
    bool retry_after;         /* 503: send "Retry-After: CATALOGUE_RETRY_AFTER" */
    uint64_t frame_position;  /* the part of the first video frame in the body: offset from the body's start … */
    uint64_t frame_bytes;     /* … and size; 0: none of it is */
    catalogue_body body;      /* close it always */
} catalogue_response;

/* Decides the answer; strings need not end in NUL. range: value of the Range field, NULL for none. Never fails: what
 * cannot be served gets the status that says so and an empty body. */
void catalogue_respond(catalogue *, const char *method, size_t method_len, const char *target, size_t target_len,
                       const char *range, size_t range_len, catalogue_response *out);

/* Turns the answer into a 503 with Retry-After and closes its body: there is no room to send it now. */
void catalogue_refuse(catalogue_response *);

/* Bytes still to come. */
uint64_t catalogue_body_left(const catalogue_body *);
/* Up to cap next bytes: how many, 0 at the end, -1 when the file failed or shrank: reset the stream, it cannot be ended
 * properly. */
ssize_t catalogue_body_read(catalogue_body *, uint8_t *buf, size_t cap);
void catalogue_body_close(catalogue_body *);

#endif
