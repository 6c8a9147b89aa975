#include "http/hq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 16384

/* One request and its response. */
typedef struct exchange {
    struct exchange *next;
    uint64_t stream;
    char *line; /* server: request received so far, NULL after request(); client: request to send */
    size_t line_len, line_sent;
    bool asked;      /* server: request() was called */
    bool is_sending; /* the response (server) or request (client) is not completely written */
    h3_body body;
    uint64_t body_sent;
} exchange;

struct hq_session {
    xl_connection *connection;
    bool is_server;
    hq_callbacks cb;
    exchange *exchanges;
};

hq_session *hq_session_new(xl_connection *connection, bool is_server, const hq_callbacks *cb) {
    hq_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->connection = connection;
    s->is_server = is_server;
    s->cb = *cb;
    return s;
}

static void close_body(exchange *e) {
    if (e->body.close)
        e->body.close(e->body.user);
    e->body = (h3_body){0};
}

static void forget(hq_session *s, uint64_t stream) {
    for (exchange **at = &s->exchanges; *at; at = &(*at)->next) {
        exchange *e = *at;
        if (e->stream != stream)
            continue;
        *at = e->next;
        close_body(e);
        free(e->line);
        free(e);
        return;
    }
}

void hq_session_free(hq_session *s) {
    if (!s)
        return;
    while (s->exchanges)
        forget(s, s->exchanges->stream);
    free(s);
}

static exchange *find(hq_session *s, uint64_t stream) {
    exchange *e = s->exchanges;
    while (e && e->stream != stream)
        e = e->next;
    return e;
}

static exchange *add(hq_session *s, uint64_t stream) {
    exchange *e = calloc(1, sizeof *e);
    char *line = malloc(HQ_MAX_LINE_BYTES + 1);
    if (!e || !line) {
        free(e);
        free(line);
        return NULL;
    }
    *e = (exchange){.next = s->exchanges, .stream = stream, .line = line};
    s->exchanges = e;
    return e;
}

static void give_up(hq_session *s, uint64_t stream, uint64_t error_code) {
    (void)xl_stream_reset(s->connection, stream, error_code);
    (void)xl_stream_stop(s->connection, stream, error_code);
    forget(s, stream);
}

/* ---- Requests ---- */

/* Returns the path of "GET /path", with or without a line end; NULL: not such a line. */
static const char *path_of(exchange *e) {
    e->line[e->line_len] = '\0';
    e->line[strcspn(e->line, "\r\n")] = '\0';
    bool is_text = strlen(e->line) + 2 >= e->line_len;
    return is_text && strncmp(e->line, "GET /", 5) == 0 ? e->line + 4 : NULL;
}

static void take_request(hq_session *s, exchange *e) {
    uint8_t more;
    bool fin = false;
    ssize_t n = 0;
    if (e->asked)
        return;
    while (e->line_len < HQ_MAX_LINE_BYTES &&
           (n = xl_stream_read(s->connection, e->stream, (uint8_t *)e->line + e->line_len,
                               HQ_MAX_LINE_BYTES - e->line_len, &fin)) > 0)
        e->line_len += (size_t)n;
    if (!fin && e->line_len == HQ_MAX_LINE_BYTES && xl_stream_read(s->connection, e->stream, &more, 1, &fin) > 0) {
        give_up(s, e->stream, HQ_BAD_REQUEST);
        return;
    }
    if (!fin)
        return;
    e->asked = true;
    char *line = e->line; /* freed now, because the response may take long */
    const char *path = path_of(e);
    e->line = NULL;
    if (path)
        s->cb.request(s->cb.user, e->stream, path);
    else
        give_up(s, e->stream, HQ_BAD_REQUEST);
    free(line);
}

static void on_request_readable(hq_session *s, uint64_t stream) {
    exchange *e = find(s, stream);
    if (!e && !(e = add(s, stream)))
        give_up(s, stream, HQ_BAD_REQUEST);
    else
        take_request(s, e);
}

int hq_submit(hq_session *s, const char *path, uint64_t *stream) {
    if (strlen(path) + 6 > HQ_MAX_LINE_BYTES)
        return XL_ERR_ARGUMENT;
    int error = xl_stream_open(s->connection, true, stream);
    exchange *e = error ? NULL : add(s, *stream);
    if (!e)
        return error ? error : XL_ERR_MEMORY;
    e->line_len = (size_t)snprintf(e->line, HQ_MAX_LINE_BYTES, "GET %s\r\n", path);
    e->is_sending = true;
    return 0;
}

/* ---- Answers ---- */

static void on_answer_readable(hq_session *s, uint64_t stream) {
    uint8_t piece[PIECE_BYTES];
    bool fin = false;
    ssize_t n;
    while ((n = xl_stream_read(s->connection, stream, piece, sizeof piece, &fin)) > 0)
        s->cb.body(s->cb.user, stream, piece, (size_t)n);
    if (fin && find(s, stream)) {
        forget(s, stream);
        s->cb.end(s->cb.user, stream);
    }
}

int hq_respond(hq_session *s, uint64_t stream, const h3_body *body) {
    exchange *e = find(s, stream);
    if (!e) {
        if (body && body->close)
            body->close(body->user);
        return XL_ERR_STREAM_STATE;
    }
    if (body)
        e->body = *body;
    e->is_sending = true;
    if (body)
        (void)xl_stream_expect(s->connection, stream, body->length);
    return 0;
}

void hq_refuse(hq_session *s, uint64_t stream, uint64_t error_code) {
    give_up(s, stream, error_code);
}

/* ---- Writing ---- */

/* Sends as much of the body as there is room for. False: its source failed, or the stream is closed. */
static bool send_body(hq_session *s, exchange *e) {
    while (e->is_sending) {
        const uint64_t left = e->body.length - e->body_sent;
        const size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        uint8_t *at;
        const ssize_t n = xl_stream_reserve(s->connection, e->stream, len, &at);
        if (n < 0 || (n > 0 && !e->body.read(e->body.user, e->body_sent, at, (size_t)n)))
            return false;
        if (n == 0 && len > 0)
            return true; /* XL_EVENT_STREAM_WRITABLE follows */
        const bool fin = (uint64_t)n == left;
        if (xl_stream_commit(s->connection, e->stream, (size_t)n, fin, NULL) != XL_OK)
            return false;
        e->body_sent += (uint64_t)n;
        e->is_sending = !fin;
    }
    return true;
}

static bool send_line(hq_session *s, exchange *e) {
    size_t left = e->line_len - e->line_sent;
    ssize_t n = xl_stream_send(s->connection, e->stream, (const uint8_t *)e->line + e->line_sent, left, true, NULL);
    if (n < 0)
        return false;
    e->line_sent += (size_t)n;
    e->is_sending = e->line_sent < e->line_len;
    return true;
}

void hq_pump(hq_session *s) {
    for (exchange *e = s->exchanges, *next; e; e = next) {
        next = e->next;
        if (!e->is_sending)
            continue;
        bool ok = s->is_server ? send_body(s, e) : send_line(s, e);
        if (!ok) {
            uint64_t stream = e->stream;
            give_up(s, stream, HQ_BAD_REQUEST);
            s->cb.abort(s->cb.user, stream, HQ_BAD_REQUEST);
        } else if (!e->is_sending) {
            close_body(e);
        }
    }
}

void hq_on_event(hq_session *s, const xl_event *event) {
    uint64_t stream = event->stream_id;
    switch (event->type) {
    case XL_EVENT_STREAM_READABLE:
        if (s->is_server)
            on_request_readable(s, stream);
        else
            on_answer_readable(s, stream);
        break;
    case XL_EVENT_STREAM_RESET:
    case XL_EVENT_STREAM_STOPPED:
        if (find(s, stream)) {
            give_up(s, stream, event->error_code);
            s->cb.abort(s->cb.user, stream, event->error_code);
        }
        break;
    case XL_EVENT_STREAM_DONE:
        if (s->is_server && find(s, stream)) {
            forget(s, stream);
            s->cb.acknowledged(s->cb.user, stream);
        }
        break;
    default:
        break;
    }
}
