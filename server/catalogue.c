#include "server/catalogue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/error.h"
#include "base/numbers.h"
#include "video/video.h"

struct catalogue {
    catalogue_video video;
    bool has_files;
    catalogue_files files;
    json_t *index; /* target -> array of {offset, size}; NULL: no frame index */
};

catalogue *catalogue_new(const catalogue_video *model, const catalogue_files *files) {
    catalogue *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->video = *model;
    c->has_files = files != NULL;
    if (files)
        c->files = *files;
    return c;
}

void catalogue_free(catalogue *c) {
    if (c) {
        json_decref(c->index);
        free(c);
    }
}

/* Frames must be contiguous from byte 0, each of at least one byte. Returns NULL or what is wrong. */
static const char *check_frames(const json_t *frames) {
    if (!json_is_array(frames) || json_array_size(frames) == 0)
        return "is not a list of frames";
    size_t i = 0;
    json_t *frame = NULL;
    json_int_t expected = 0;
    json_array_foreach(frames, i, frame) {
        const json_t *offset = json_object_get(frame, "offset"), *size = json_object_get(frame, "size");
        if (!json_is_integer(offset) || !json_is_integer(size) || json_integer_value(size) < 1 ||
            json_integer_value(size) > (json_int_t)VIDEO_MAX_BYTES)
            return "has a frame without an integer offset and a positive size";
        if (json_integer_value(offset) != expected)
            return "has a frame that does not begin where the one before ends";
        expected += json_integer_value(size);
        if (expected > (json_int_t)VIDEO_MAX_BYTES)
            return "is too large";
    }
    return NULL;
}

bool catalogue_load_frame_index(catalogue *c, const char *json, size_t len, char *error, size_t error_cap) {
    json_error_t at;
    json_t *index = json_loadb(json, len, JSON_REJECT_DUPLICATES, &at);
    if (!index) {
        make_printable(at.text);
        return error_set(error, error_cap, "line %d: %s", at.line, at.text);
    }
    if (!json_is_object(index)) {
        snprintf(error, error_cap,
                 "line 1: a frame index is an object of the form {\"/video\": [{\"offset\": 0, \"size\": 1}]}");
        json_decref(index);
        return false;
    }
    const char *target = NULL;
    json_t *frames = NULL;
    json_object_foreach(index, target, frames) {
        const char *problem = target[0] != '/' ? "does not begin with '/'" : check_frames(frames);
        if (problem) {
            snprintf(error, error_cap, "video \"%.64s\" %s", target, problem);
            json_decref(index);
            return false;
        }
    }
    json_decref(c->index);
    c->index = index;
    return true;
}

bool catalogue_set_first_frame(catalogue *c, const char *target, uint64_t bytes) {
    c->index = c->index ? c->index : json_object();
    return json_object_set_new(c->index, target, json_pack("[{s:i, s:I}]", "offset", 0, "size", (json_int_t)bytes)) ==
           0;
}

/* Size of the first frame, which always begins at byte 0; 0: unknown. */
static uint64_t first_frame_bytes(const catalogue *c, const char *target, uint64_t resource_bytes) {
    const json_t *frames = c->index ? json_object_get(c->index, target) : NULL;
    uint64_t bytes = c->video.first_frame_bytes;
    if (frames)
        bytes = (uint64_t)json_integer_value(json_object_get(json_array_get(frames, 0), "size"));
    else if (bytes == 0 && c->video.bitrate_bps != 0 && c->video.fps_milli != 0)
        bytes = video_default_first_frame(c->video.bitrate_bps, c->video.fps_milli);
    return bytes < resource_bytes ? bytes : resource_bytes;
}

typedef enum { RANGE_NONE, RANGE_GIVEN, RANGE_UNSATISFIABLE } range_kind;

/* RFC 9110 section 14.1.2, for a single range. Anything else, including lists, is ignored, as section 14.2 allows. */
static range_kind parse_range(const char *text, uint64_t size, uint64_t *first, uint64_t *last) {
    static const char unit[] = "bytes=";
    if (!text || strncasecmp(text, unit, sizeof unit - 1) != 0)
        return RANGE_NONE;
    const char *begin = text + sizeof unit - 1, *dash = strchr(begin, '-');
    if (!dash)
        return RANGE_NONE;
    size_t first_len = (size_t)(dash - begin), last_len = strlen(dash + 1);
    uint64_t a = 0, b = UINT64_MAX;
    if (first_len == 0) {
        /* The last b bytes. */
        if (!number_parse(dash + 1, last_len, &b))
            return RANGE_NONE;
        *first = b < size ? size - b : 0;
        *last = size - 1;
        return b == 0 || size == 0 ? RANGE_UNSATISFIABLE : RANGE_GIVEN;
    }
    if (!number_parse(begin, first_len, &a) || (last_len > 0 && !number_parse(dash + 1, last_len, &b)) || b < a)
        return RANGE_NONE;
    *first = a;
    *last = b < size ? b : size - 1;
    return a >= size ? RANGE_UNSATISFIABLE : RANGE_GIVEN;
}

/* Whether no segment is empty, "." or "..". `path` has no leading slash. */
static bool plain_path(const char *path) {
    for (const char *segment = path;; segment++) {
        size_t len = strcspn(segment, "/");
        if (len == 0 || (len == 1 && segment[0] == '.') || (len == 2 && segment[0] == '.' && segment[1] == '.'))
            return false;
        segment += len;
        if (*segment == '\0')
            return true;
    }
}

/* Copies the target without its query, percent-decoded. False: it is not a path, or too long. */
static bool decode_target(const char *target, char out[CATALOGUE_MAX_PATH_BYTES]) {
    size_t n = 0;
    if (target[0] != '/')
        return false;
    for (const char *at = target; *at != '\0' && *at != '?' && *at != '#'; at++) {
        char c = *at;
        if (c == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            at += 2;
        }
        if (c == '\0' || n + 1 >= CATALOGUE_MAX_PATH_BYTES)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

/* Finds the resource and its size, and opens the body on it. */
static int open_resource(catalogue *c, const char *path, catalogue_response *out) {
    if (video_synthetic_parse(path, strlen(path), &out->resource_bytes)) {
        out->body.synthetic = true;
        return 200;
    }
    if (!c->has_files || !plain_path(path + 1))
        return 404;
    out->body.handle = c->files.open(c->files.user, path + 1, &out->resource_bytes);
    return out->body.handle >= 0 ? 200 : out->body.handle == CATALOGUE_BUSY ? 503 : 404;
}

/* Content-Type by the file's extension (RFC 9110 section 8.3). It decides whether a browser plays, shows or saves
 * it. */
static const char *media_type(const char *path) {
    static const struct {
        const char *ending, *type;
    } known[] = {
        {".mp4", "video/mp4"},
        {".m4s", "video/mp4"},
        {".m4v", "video/mp4"},
        {".webm", "video/webm"},
        {".ts", "video/mp2t"},
        {".m4a", "audio/mp4"},
        {".mpd", "application/dash+xml"},
        {".m3u8", "application/vnd.apple.mpegurl"},
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".txt", "text/plain; charset=utf-8"},
        {".vtt", "text/vtt; charset=utf-8"},
        {".json", "application/json"},
        {".xml", "application/xml"},
        {".wasm", "application/wasm"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".svg", "image/svg+xml"},
        {".ico", "image/vnd.microsoft.icon"},
    };
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(ending, known[i].ending) == 0)
            return known[i].type;
    return "application/octet-stream";
}

static void plan_range(catalogue *c, const char *path, const char *range, catalogue_response *out) {
    uint64_t size = out->resource_bytes;
    out->accept_ranges = true;
    out->content_type = out->body.synthetic ? "video/mp4" : media_type(path);
    out->first = 0;
    out->last = size > 0 ? size - 1 : 0;
    out->content_length = size;
    switch (parse_range(range, size, &out->first, &out->last)) {
    case RANGE_UNSATISFIABLE:
        out->status = 416;
        out->content_length = 0;
        snprintf(out->content_range, sizeof out->content_range, "bytes */%" PRIu64, size);
        return;
    case RANGE_GIVEN:
        out->status = 206;
        out->content_length = out->last - out->first + 1;
        snprintf(out->content_range, sizeof out->content_range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, out->first,
                 out->last, size);
        break;
    case RANGE_NONE:
        break;
    }
    uint64_t frame = first_frame_bytes(c, path, size);
    if (out->first < frame) {
        uint64_t end = out->first + out->content_length;
        out->frame_bytes = (frame < end ? frame : end) - out->first;
    }
}

void catalogue_respond(catalogue *c, const char *method, const char *target, const char *range,
                       catalogue_response *out) {
    *out = (catalogue_response){.content_type = "text/plain", .body = {.owner = c, .handle = -1}};
    bool head = strcmp(method, "HEAD") == 0;
    if (!head && strcmp(method, "GET") != 0) {
        out->status = 405;
        out->allow = true;
        return;
    }
    char path[CATALOGUE_MAX_PATH_BYTES];
    out->status = decode_target(target, path) ? open_resource(c, path, out) : 400;
    out->retry_after = out->status == 503;
    if (out->status != 200)
        return;
    /* Range has a meaning for GET only (RFC 9110 section 14.2). */
    plan_range(c, path, head ? NULL : range, out);
    if (!head) {
        out->body.position = out->first;
        out->body.end = out->first + out->content_length;
    } else {
        out->frame_bytes = 0;
    }
}

void catalogue_refuse(catalogue_response *out) {
    catalogue_body_close(&out->body);
    *out = (catalogue_response){.status = 503, .retry_after = true, .content_type = "text/plain", .body = out->body};
}

uint64_t catalogue_body_left(const catalogue_body *body) {
    return body->end - body->position;
}

ssize_t catalogue_body_read(catalogue_body *body, uint8_t *buf, size_t cap) {
    uint64_t left = catalogue_body_left(body);
    size_t len = left < cap ? (size_t)left : cap;
    if (len == 0)
        return 0;
    if (body->synthetic) {
        video_synthetic_fill(buf, len, body->position);
    } else {
        const catalogue_files *files = &body->owner->files;
        ssize_t n = body->handle >= 0 ? files->read(files->user, body->handle, body->position, buf, len) : -1;
        if (n <= 0)
            return -1;
        len = (size_t)n;
    }
    body->position += len;
    return (ssize_t)len;
}

void catalogue_body_close(catalogue_body *body) {
    if (body->handle >= 0)
        body->owner->files.close(body->owner->files.user, body->handle);
    body->handle = -1;
    body->position = body->end = 0;
}
