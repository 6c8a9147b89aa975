/* nghttp3's callbacks: received fields and bodies, and bodies to send. */
#include "http/http3_internal.h"

#include <stdlib.h>
#include <string.h>

#include "http/content_range.h"

#define MAX_VALUE_BYTES 1024 /* of a request's path, authority and range */

/* ---- streams ---- */

h3_stream *h3_stream_find(const h3_session *s, int64_t id) {
    for (h3_stream *st = s->streams; st; st = st->next)
        if (st->id == id)
            return st;
    return NULL;
}

h3_stream *h3_stream_new(h3_session *s, int64_t id) {
    h3_stream *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->id = id;
    st->next = s->streams;
    s->streams = st;
    return st;
}

void h3_stream_close_body(h3_stream *st) {
    if (st->has_body && st->body.close)
        st->body.close(st->body.user);
    st->has_body = false;
}

/* Stops counting the stream's head, when it is complete or the stream is freed. */
static void forget_head_bytes(h3_session *s, h3_stream *st) {
    s->heads_bytes -= st->head_bytes;
    st->head_bytes = 0;
}

void h3_stream_free(h3_session *s, h3_stream *st) {
    forget_head_bytes(s, st);
    for (h3_stream **at = &s->streams; *at; at = &(*at)->next) {
        if (*at == st) {
            *at = st->next;
            break;
        }
    }
    h3_stream_close_body(st);
    h3_log_forget(s->log, (uint64_t)st->id);
    json_decref(st->fields);
    json_decref(st->sent_fields);
    free(st->path);
    free(st->authority);
    free(st->range);
    free(st);
}

void h3_stream_drop(h3_session *s, uint64_t id, uint64_t error_code) {
    (void)xl_stream_stop(s->connection, id, error_code);
    (void)xl_stream_reset(s->connection, id, error_code);
    nghttp3_conn_shutdown_stream_write(s->h3, (int64_t)id);
    s->is_flushed = false;
}

void h3_stream_abort(h3_session *s, h3_stream *st, uint64_t error_code) {
    if (st->over)
        return;
    st->over = true;
    h3_stream_close_body(st);
    if (s->callbacks.abort && (st->head_done || !s->is_server))
        s->callbacks.abort(s->callbacks.user, (uint64_t)st->id, error_code);
}

/* ---- received fields ---- */

static void response_field(h3_response_head *head, int32_t token, nghttp3_vec name, nghttp3_vec value) {
    const char *text = (const char *)value.base;
    uint64_t number;
    if (token == NGHTTP3_QPACK_TOKEN__STATUS && number_parse(text, value.len, &number)) {
        head->status = (unsigned)number; /* nghttp3 has checked that there are three digits */
    } else if (token == NGHTTP3_QPACK_TOKEN_CONTENT_LENGTH && number_parse(text, value.len, &number)) {
        head->has_content_length = true;
        head->content_length = number;
    } else if (strcmp((const char *)name.base, "content-range") == 0) {
        head->has_content_range = http_content_range(text, value.len, &head->first, &head->last, &head->total);
    }
}

static bool keep(char **slot, nghttp3_vec value) {
    if (value.len > MAX_VALUE_BYTES || *slot)
        return false;
    *slot = malloc(value.len + 1);
    if (!*slot)
        return false;
    memcpy(*slot, value.base, value.len);
    (*slot)[value.len] = '\0';
    return true;
}

static bool request_field(h3_stream *st, int32_t token, nghttp3_vec value) {
    switch (token) {
    case NGHTTP3_QPACK_TOKEN__METHOD:
        if (value.len >= sizeof st->method)
            value.len = sizeof st->method - 1; /* longer than every supported method, so the response is 405 */
        memcpy(st->method, value.base, value.len);
        return true;
    case NGHTTP3_QPACK_TOKEN__PATH:
        return keep(&st->path, value);
    case NGHTTP3_QPACK_TOKEN__AUTHORITY:
        return keep(&st->authority, value);
    case NGHTTP3_QPACK_TOKEN_RANGE:
        return keep(&st->range, value);
    case NGHTTP3_QPACK_TOKEN_IF_RANGE:
        st->has_if_range = true;
        return true;
    default:
        return true;
    }
}

void h3_stream_refuse(h3_session *s, h3_stream *st, uint64_t error_code) {
    h3_stream_abort(s, st, error_code);
    st->over = true;
    h3_stream_drop(s, (uint64_t)st->id, error_code);
}

static int on_begin_headers(nghttp3_conn *h3, int64_t id, void *user, void *stream_user) {
    h3_session *s = user;
    (void)stream_user;
    h3_stream *st = h3_stream_find(s, id);
    if (st) {
        memset(&st->head, 0, sizeof st->head);
        st->field_section_bytes = 0;
        json_decref(st->fields);
        st->fields = h3_log_fields(s->log);
        nghttp3_conn_set_stream_user_data(h3, id, st);
    }
    return 0;
}

static int on_header(nghttp3_conn *h3, int64_t id, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                     uint8_t flags, void *user, void *stream_user) {
    (void)h3, (void)id, (void)flags;
    h3_session *s = user;
    h3_stream *st = stream_user;
    if (!st || st->over)
        return 0;
    nghttp3_vec n = nghttp3_rcbuf_get_buf(name), v = nghttp3_rcbuf_get_buf(value);
    st->field_section_bytes += n.len + v.len + 32; /* RFC 9114 section 4.2.2 */
    h3_log_field(st->fields, n.base, n.len, v.base, v.len);
    if (st->field_section_bytes > H3_MAX_FIELD_SECTION_BYTES)
        h3_stream_refuse(s, st, H3_EXCESSIVE_LOAD);
    else if (!s->is_server)
        response_field(&st->head, token, n, v);
    else if (!request_field(st, token, v))
        h3_stream_refuse(s, st, H3_EXCESSIVE_LOAD);
    return 0;
}

static int on_begin_trailers(nghttp3_conn *h3, int64_t id, void *user, void *stream_user) {
    (void)h3, (void)id, (void)user;
    if (stream_user)
        ((h3_stream *)stream_user)->field_section_bytes = 0;
    return 0;
}

/* Trailers have the same limit, and are otherwise ignored. */
static int on_trailer(nghttp3_conn *h3, int64_t id, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                      uint8_t flags, void *user, void *stream_user) {
    (void)h3, (void)id, (void)token, (void)flags;
    h3_stream *st = stream_user;
    if (st && !st->over) {
        st->field_section_bytes += nghttp3_rcbuf_get_buf(name).len + nghttp3_rcbuf_get_buf(value).len + 32;
        if (st->field_section_bytes > H3_MAX_FIELD_SECTION_BYTES)
            h3_stream_refuse(user, st, H3_EXCESSIVE_LOAD);
    }
    return 0;
}

void h3_apply_priority(h3_session *s, const h3_stream *st) {
    nghttp3_pri priority;
    if (nghttp3_conn_get_stream_priority(s->h3, &priority, st->id) == 0)
        (void)xl_stream_set_priority(s->connection, (uint64_t)st->id, (uint8_t)priority.urgency);
}

static int on_end_headers(nghttp3_conn *h3, int64_t id, int fin, void *user, void *stream_user) {
    (void)h3, (void)fin;
    h3_session *s = user;
    h3_stream *st = stream_user;
    if (!st)
        return 0;
    h3_log_headers(s->log, (uint64_t)id, false, st->fields, s->now);
    st->fields = NULL;
    if (st->over || st->head_done)
        return 0;
    if (s->is_server) {
        st->head_done = true;
        forget_head_bytes(s, st);
        h3_apply_priority(s, st);
        h3_request request = {.method = st->method,
                              .path = st->path ? st->path : "",
                              .authority = st->authority ? st->authority : "",
                              .range = st->has_if_range ? NULL : st->range};
        if (s->callbacks.request)
            s->callbacks.request(s->callbacks.user, (uint64_t)id, &request);
    } else if (st->head.status >= 200) { /* after 1xx the final response follows */
        st->head_done = true;
        if (s->callbacks.response)
            s->callbacks.response(s->callbacks.user, (uint64_t)id, &st->head);
    }
    return 0;
}

static int on_data(nghttp3_conn *h3, int64_t id, const uint8_t *data, size_t len, void *user, void *stream_user) {
    (void)h3;
    h3_session *s = user;
    h3_stream *st = stream_user;
    if (st && !st->over && !s->is_server && s->callbacks.body)
        s->callbacks.body(s->callbacks.user, (uint64_t)id, data, len);
    return 0;
}

static int on_end_stream(nghttp3_conn *h3, int64_t id, void *user, void *stream_user) {
    (void)h3;
    h3_session *s = user;
    h3_stream *st = stream_user;
    if (st && !st->over && !s->is_server) {
        st->over = true;
        if (s->callbacks.end)
            s->callbacks.end(s->callbacks.user, (uint64_t)id);
    }
    return 0;
}

/* nghttp3 refuses a stream: malformed, of an unknown type, or too late. */
static int on_stop_sending(nghttp3_conn *h3, int64_t id, uint64_t code, void *user, void *stream_user) {
    (void)h3;
    h3_session *s = user;
    (void)xl_stream_stop(s->connection, (uint64_t)id, code);
    if (stream_user)
        h3_stream_abort(s, stream_user, code);
    return 0;
}

static int on_reset_stream(nghttp3_conn *h3, int64_t id, uint64_t code, void *user, void *stream_user) {
    h3_session *s = user;
    (void)xl_stream_reset(s->connection, (uint64_t)id, code);
    nghttp3_conn_shutdown_stream_write(h3, id);
    if (stream_user)
        h3_stream_abort(s, stream_user, code);
    return 0;
}

static int on_goaway(nghttp3_conn *h3, int64_t id, void *user) {
    (void)h3;
    h3_session *s = user;
    bool first = !s->goaway_received;
    s->goaway_received = true;
    if (first && s->callbacks.goaway)
        s->callbacks.goaway(s->callbacks.user);
    if (!s->is_server) {
        for (h3_stream *st = s->streams; st; st = st->next)
            if (st->id >= id)
                h3_stream_abort(s, st, H3_REQUEST_REJECTED);
    }
    return 0;
}

static int on_stream_close(nghttp3_conn *h3, int64_t id, uint64_t code, void *user, void *stream_user) {
    (void)h3, (void)id, (void)code;
    h3_session *s = user;
    h3_stream *st = stream_user;
    if (st) {
        if (s->is_server && st->written && !st->over && s->callbacks.response_acknowledged)
            s->callbacks.response_acknowledged(s->callbacks.user, (uint64_t)id);
        h3_stream_free(s, st);
    }
    return 0;
}

/* ---- bodies to send ---- */

static int on_acked_data(nghttp3_conn *h3, int64_t id, uint64_t len, void *user, void *stream_user) {
    (void)h3, (void)id, (void)user;
    h3_stream *st = stream_user;
    if (st)
        st->chunk_left -= len < st->chunk_left ? (size_t)len : st->chunk_left;
    return 0;
}

/* Provides the next DATA frame, once the transport has taken the one before. */
nghttp3_ssize h3_read_data(nghttp3_conn *h3, int64_t id, nghttp3_vec *vec, size_t vec_count, uint32_t *flags,
                           void *user, void *stream_user) {
    (void)h3, (void)id, (void)vec_count, (void)user;
    h3_stream *st = stream_user;
    *flags = NGHTTP3_DATA_FLAG_NONE;
    if (st && st->chunk_left > 0) {
        st->waiting = true;
        return NGHTTP3_ERR_WOULDBLOCK;
    }
    uint64_t left = st && st->has_body ? st->body.length - st->body_framed : 0;
    size_t len = left < H3_DATA_FRAME_BYTES ? (size_t)left : H3_DATA_FRAME_BYTES;
    if (len == left)
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    if (len == 0)
        return 0;
    st->body_framed += len;
    st->chunk_left = len;
    vec[0] = (nghttp3_vec){.base = h3_payload, .len = len};
    return 1;
}

const nghttp3_callbacks h3_nghttp3_callbacks = {.acked_stream_data = on_acked_data,
                                                .stream_close = on_stream_close,
                                                .recv_data = on_data,
                                                .begin_headers = on_begin_headers,
                                                .recv_header = on_header,
                                                .end_headers = on_end_headers,
                                                .begin_trailers = on_begin_trailers,
                                                .recv_trailer = on_trailer,
                                                .stop_sending = on_stop_sending,
                                                .end_stream = on_end_stream,
                                                .reset_stream = on_reset_stream,
                                                .shutdown = on_goaway};
