#include "http/http1.h"

#include <string.h>
#include <strings.h>

#include "base/numbers.h"
#include "http/content_range.h"

typedef struct {
    const char *at;
    size_t len;
} span;

static bool is_token_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool span_is(span s, const char *text) {
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

static bool copy_span(span s, char *out, size_t cap) {
    if (s.len >= cap)
        return false;
    memcpy(out, s.at, s.len);
    out[s.len] = '\0';
    return true;
}

/* Returns the length of the head including its empty line; 0: incomplete; -431: too long. */
static ssize_t head_length(const char *buf, size_t len, size_t *scanned) {
    size_t limit = len < HTTP1_MAX_HEAD_BYTES ? len : HTTP1_MAX_HEAD_BYTES;
    size_t from = *scanned > 3 ? *scanned - 3 : 0;
    if (from < limit) {
        const char *end = memmem(buf + from, limit - from, "\r\n\r\n", 4);
        if (end)
            return end + 4 - buf;
    }
    *scanned = limit;
    return len >= HTTP1_MAX_HEAD_BYTES ? -431 : 0;
}

/* Removes the next CRLF-terminated line from *rest. A bare CR, LF or NUL in it is an error (RFC 9112 section 2.2). */
static bool next_line(span *rest, span *line) {
    const char *end = memmem(rest->at, rest->len, "\r\n", 2);
    if (!end)
        return false;
    *line = (span){rest->at, (size_t)(end - rest->at)};
    rest->len -= line->len + 2;
    rest->at = end + 2;
    return !memchr(line->at, '\r', line->len) && !memchr(line->at, '\n', line->len) &&
           !memchr(line->at, '\0', line->len);
}

/* Splits "name: value"; no space before the colon, no folded lines (RFC 9112 section 5). */
static bool split_field(span line, span *name, span *value) {
    size_t n = 0;
    while (n < line.len && is_token_char(line.at[n]))
        n++;
    if (n == 0 || n == line.len || line.at[n] != ':')
        return false;
    *name = (span){line.at, n};
    const char *begin = line.at + n + 1, *end = line.at + line.len;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *value = (span){begin, (size_t)(end - begin)};
    for (const char *c = begin; c < end; c++)
        if ((unsigned char)*c < 0x20 && *c != '\t')
            return false;
    return true;
}

/* Whether a comma-separated list contains this token. */
static bool list_has(span list, const char *token) {
    while (list.len > 0) {
        const char *comma = memchr(list.at, ',', list.len);
        size_t part_len = comma ? (size_t)(comma - list.at) : list.len;
        span part = {list.at, part_len};
        while (part.len > 0 && (*part.at == ' ' || *part.at == '\t')) {
            part.at++;
            part.len--;
        }
        while (part.len > 0 && (part.at[part.len - 1] == ' ' || part.at[part.len - 1] == '\t'))
            part.len--;
        if (span_is(part, token))
            return true;
        size_t used = comma ? part_len + 1 : part_len;
        list.at += used;
        list.len -= used;
    }
    return false;
}

/* Returns 0 for HTTP/1.0, 1 for HTTP/1.1 or a later minor version, or a negated status: -400, -505. */
static int parse_version(span s) {
    if (s.len != 8 || memcmp(s.at, "HTTP/", 5) != 0 || s.at[6] != '.' || s.at[5] < '0' || s.at[5] > '9' ||
        s.at[7] < '0' || s.at[7] > '9')
        return -400;
    return s.at[5] != '1' ? -505 : s.at[7] != '0';
}

/* Whether all characters are allowed in host and port (RFC 3986 section 3.2). True for an empty text. */
static bool is_authority(span s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < '!' || s.at[i] > '~' || strchr("\"#/<>?@\\^`{|}", s.at[i]))
            return false;
    return true;
}

/* The fields of a request or response. */
typedef struct {
    bool connection_close, connection_keep_alive, transfer_encoding;
    unsigned hosts;
    bool is_bad_host, is_if_range;
    bool has_content_length;
    uint64_t content_length;
    span range, content_range;
} fields;

static bool take_field(fields *f, span name, span value) {
    if (span_is(name, "content-length")) {
        uint64_t n = 0;
        if (!number_parse(value.at, value.len, &n) || (f->has_content_length && n != f->content_length))
            return false;
        f->has_content_length = true;
        f->content_length = n;
    } else if (span_is(name, "transfer-encoding")) {
        f->transfer_encoding = true;
    } else if (span_is(name, "connection")) {
        f->connection_close |= list_has(value, "close");
        f->connection_keep_alive |= list_has(value, "keep-alive");
    } else if (span_is(name, "host")) {
        f->hosts++;
        f->is_bad_host |= !is_authority(value);
    } else if (span_is(name, "range")) {
        f->range = value;
    } else if (span_is(name, "if-range")) {
        f->is_if_range = true;
    } else if (span_is(name, "content-range")) {
        f->content_range = value;
    }
    return true;
}

/* Returns 0 or the negated status. */
static ssize_t parse_fields(span rest, fields *f) {
    *f = (fields){0};
    for (unsigned count = 0; rest.len > 2; count++) {
        span line, name, value;
        if (count >= HTTP1_MAX_FIELDS)
            return -431;
        if (!next_line(&rest, &line) || !split_field(line, &name, &value) || !take_field(f, name, value))
            return -400;
    }
    return 0;
}

/* Returns the part of "http://host/target" after the host, which may be empty (RFC 9112 section 3.2.2), or other
 * targets unchanged. */
static span without_origin(span target) {
    static const char scheme[] = "http://";
    const size_t from = sizeof scheme - 1;
    if (target.len < from || strncasecmp(target.at, scheme, from) != 0)
        return target;
    size_t at = from;
    while (at < target.len && target.at[at] != '/' && target.at[at] != '?')
        at++;
    const span host = {target.at + from, at - from};
    return host.len > 0 && is_authority(host) ? (span){target.at + at, target.len - at} : target;
}

/* Parses "GET /target HTTP/1.1". Returns the minor version, 0 or 1, or the negated status. */
static ssize_t parse_request_line(span line, http1_request *out) {
    const char *sp1 = memchr(line.at, ' ', line.len);
    const char *sp2 = memrchr(line.at, ' ', line.len);
    if (!sp1 || sp1 == line.at || sp1 == sp2)
        return -400;
    span method = {line.at, (size_t)(sp1 - line.at)};
    span target = {sp1 + 1, (size_t)(sp2 - sp1 - 1)};
    span version = {sp2 + 1, (size_t)(line.at + line.len - sp2 - 1)};
    for (size_t i = 0; i < method.len; i++)
        if (!is_token_char(method.at[i]))
            return -400;
    for (size_t i = 0; i < target.len; i++)
        if (target.at[i] < '!' || target.at[i] > '~') /* URIs are ASCII (RFC 3986 section 2) */
            return -400;
    int minor = parse_version(version);
    if (minor < 0)
        return minor;
    if (!copy_span(method, out->method, sizeof out->method))
        return -501;
    if (target.len == 0)
        return -400;
    const span path = without_origin(target);
    const bool needs_root = path.len == 0 || path.at[0] == '?'; /* no path after the origin */
    strcpy(out->target, needs_root ? "/" : "");
    return copy_span(path, out->target + needs_root, sizeof out->target - needs_root) ? minor : -414;
}

ssize_t http1_parse_request(const char *buf, size_t len, size_t *scanned, http1_request *out) {
    *out = (http1_request){0};
    /* At most four empty lines before a request are ignored (RFC 9112 section 2.2). */
    size_t blank = 0;
    while (blank + 1 < len && blank < 8 && buf[blank] == '\r' && buf[blank + 1] == '\n')
        blank += 2;
    *scanned = *scanned > blank ? *scanned : blank;
    ssize_t head = head_length(buf, len, scanned);
    if (head <= 0)
        return head;
    if ((size_t)head <= blank + 2)
        return -400;
    span rest = {buf + blank, (size_t)head - blank}, line;
    if (!next_line(&rest, &line))
        return -400;
    ssize_t minor = parse_request_line(line, out);
    if (minor < 0)
        return minor;
    fields f;
    ssize_t error = parse_fields(rest, &f);
    if (error < 0)
        return error;
    if (f.hosts > 1 || (minor == 1 && f.hosts == 0) || f.is_bad_host)
        return -400;
    if (f.transfer_encoding)
        return -501;
    if (f.content_length > 0)
        return -413;
    /* No response has a validator, so no If-Range is true (RFC 9110 section 13.1.5). */
    if (f.range.at && !f.is_if_range && !copy_span(f.range, out->range, sizeof out->range))
        out->range[0] = '\0';
    out->keep_alive = minor == 1 ? !f.connection_close : f.connection_keep_alive && !f.connection_close;
    return head;
}

ssize_t http1_parse_response(const char *buf, size_t len, size_t *scanned, http1_response *out) {
    *out = (http1_response){0};
    ssize_t head = head_length(buf, len, scanned);
    if (head <= 0)
        return head;
    span rest = {buf, (size_t)head}, line;
    /* "HTTP/1.1 206 Partial Content"; the reason phrase and the space before it may be missing. */
    if (!next_line(&rest, &line) || line.len < 12 || line.at[8] != ' ' || (line.len > 12 && line.at[12] != ' '))
        return -400;
    int minor = parse_version((span){line.at, 8});
    uint64_t status = 0;
    if (minor < 0 || !number_parse(line.at + 9, 3, &status) || status < 100 || status > 599)
        return -400;
    fields f;
    if (parse_fields(rest, &f) < 0 || f.transfer_encoding)
        return -400;
    out->status = (int)status;
    out->has_content_length = f.has_content_length;
    out->content_length = f.content_length;
    out->has_content_range =
        f.content_range.at && http_content_range(f.content_range.at, f.content_range.len, &out->range_first,
                                                 &out->range_last, &out->range_total);
    out->keep_alive = minor == 1 ? !f.connection_close : f.connection_keep_alive && !f.connection_close;
    return head;
}

const char *http1_reason(int status) {
    static const struct {
        int status;
        const char *reason;
    } known[] = {
        {200, "OK"},
        {206, "Partial Content"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return known[i].reason;
    return "";
}
