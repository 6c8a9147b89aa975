#include "server/ffprobe.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/numbers.h"
#include "video/video.h"

/* The members of one packet or frame, as text in every format. NULL: absent. */
typedef struct {
    const char *type, *pos, *size, *flags;
} entry;

static bool is_video(const entry *e) {
    return !e->type || strcmp(e->type, "video") == 0;
}

/* `where`: "packet 1" or "line 3", for errors. */
static bool take(const entry *e, const char *where, uint64_t *end, char *error, size_t cap) {
    uint64_t pos = 0, size = 0;
    if (!e->pos || !e->size)
        return error_set(error, cap, "%s has no pos or no size; show all of a packet (-show_packets)", where);
    if (!number_parse(e->pos, strlen(e->pos), &pos) || !number_parse(e->size, strlen(e->size), &size) || size == 0 ||
        pos > VIDEO_MAX_BYTES || size > VIDEO_MAX_BYTES) {
        return error_set(error, cap, "%s has pos %.24s and size %.24s; both must be numbers of bytes", where, e->pos,
                         e->size);
    }
    if (e->flags && !strchr(e->flags, 'K'))
        return error_set(error, cap, "%s is the first of the video but no key frame: nothing can be shown of it",
                         where);
    *end = pos + size;
    return true;
}

static const char *first_of(const json_t *object, const char *name, const char *other) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : json_string_value(json_object_get(object, other));
}

static bool from_json(const char *text, size_t len, uint64_t *end, char *error, size_t cap) {
    json_error_t at;
    json_t *root = json_loadb(text, len, 0, &at);
    if (!root) {
        make_printable(at.text);
        return error_set(error, cap, "line %d: %s", at.line, at.text);
    }
    json_t *list = json_object_get(root, "packets"), *one = NULL;
    const char *what = list ? "packet" : "frame";
    list = list ? list : json_object_get(root, "frames");
    bool ok = false, found = false;
    size_t i = 0;
    json_array_foreach(list, i, one) {
        const entry e = {.type = first_of(one, "codec_type", "media_type"),
                         .pos = first_of(one, "pos", "pkt_pos"),
                         .size = first_of(one, "size", "pkt_size"),
                         .flags = first_of(one, "flags", "")};
        if (is_video(&e)) {
            char where[40];
            snprintf(where, sizeof where, "%s %zu", what, i + 1);
            ok = take(&e, where, end, error, cap);
            found = true;
            break;
        }
    }
    if (!found)
        error_set(error, cap, "it lists no packet of a video; write it with ffprobe -show_packets -of json");
    json_decref(root);
    return ok;
}

/* Cuts "packet,codec_type=video,…" (or with |) into its members, in place. False: the line is not a packet's or
 * frame's, or has no keys. */
static bool cut_line(char *line, entry *e, bool *has_keys) {
    char *save = NULL, *field = strtok_r(line, ",|", &save);
    if (!field || (strcmp(field, "packet") != 0 && strcmp(field, "frame") != 0))
        return false;
    *e = (entry){0};
    while ((field = strtok_r(NULL, ",|", &save))) {
        char *value = strchr(field, '=');
        if (!value)
            continue;
        *has_keys = true;
        *value++ = '\0';
        const struct {
            const char *name;
            const char **into;
        } known[] = {{"codec_type", &e->type}, {"media_type", &e->type}, {"pos", &e->pos},    {"pkt_pos", &e->pos},
                     {"size", &e->size},       {"pkt_size", &e->size},   {"flags", &e->flags}};
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strcmp(field, known[i].name) == 0)
                *known[i].into = value;
    }
    return true;
}

static bool from_lines(const char *text, size_t len, uint64_t *end, char *error, size_t cap) {
    bool any = false, has_keys = false;
    size_t number = 0;
    for (const char *at = text, *stop = text + len; at < stop; number++) {
        char line[1024], where[40];
        const char *eol = memchr(at, '\n', (size_t)(stop - at));
        size_t n = (size_t)((eol ? eol : stop) - at);
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), at);
        line[strcspn(line, "\r")] = '\0';
        at += n + 1;
        entry e;
        if (!cut_line(line, &e, &has_keys))
            continue;
        any = true;
        if (has_keys && is_video(&e)) {
            snprintf(where, sizeof where, "line %zu", number + 1);
            return take(&e, where, end, error, cap);
        }
    }
    if (any && !has_keys) {
        return error_set(error, cap,
                         "its columns have no names; write it with ffprobe -show_packets -of csv=nk=0, or -of json");
    }
    return error_set(error, cap, "it lists no packet of a video; write it with ffprobe -show_packets -of json");
}

bool ffprobe_first_frame(const char *text, size_t len, uint64_t *end, char *error, size_t error_cap) {
    size_t blank = 0;
    while (blank < len && strchr(" \t\r\n", text[blank]))
        blank++;
    bool json = blank < len && text[blank] == '{';
    return json ? from_json(text, len, end, error, error_cap) : from_lines(text, len, end, error, error_cap);
}
