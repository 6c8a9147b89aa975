#include "http/http3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/grease.h"
#include "http/http3_internal.h"
#include "http/varint.h"

#define READ_BYTES          16384
#define MAX_VECS            16
#define MAX_HEADERS         24
#define CLIENT_STREAM_SLACK 256 /* streams after the newest request that a client may prioritise in advance */

uint8_t h3_payload[H3_DATA_FRAME_BYTES];

static bool is_client_bidi(uint64_t id) {
    return (id & 3) == 0;
}

/* Ends the session and closes the connection with nghttp3's error; 0: none. */
static void fail(h3_session *s, int liberr) {
    if (liberr == 0 || s->failed)
        return;
    s->failed = true;
    xl_connection_close(s->connection, nghttp3_err_infer_quic_app_error_code(liberr), nghttp3_strerror(liberr), s->now);
}

/* ---- frame marks ---- */

static uint64_t varint_bytes(uint64_t value) {
    return value < 64 ? 1 : value < 16384 ? 2 : value < (1u << 30) ? 4 : 8;
}

xl_frame_mark h3_mark_in_stream(uint64_t headers_bytes, uint64_t body_bytes, const h3_body_mark *mark) {
    uint64_t first = mark->first < body_bytes ? mark->first : body_bytes;
    uint64_t end = mark->size < body_bytes - first ? first + mark->size : body_bytes;
    const uint64_t full_frame = 1 + 2 + H3_DATA_FRAME_BYTES;
    uint64_t ends[2] = {first, end}, at[2];
    for (size_t i = 0; i < 2; i++) {
        /* The range ends after its last byte, so a frame that begins there does not belong to it. */
        uint64_t frame = ends[i] / H3_DATA_FRAME_BYTES, within = ends[i] % H3_DATA_FRAME_BYTES;
        uint64_t frame_bytes = body_bytes - frame * H3_DATA_FRAME_BYTES;
        if (frame_bytes > H3_DATA_FRAME_BYTES)
            frame_bytes = H3_DATA_FRAME_BYTES;
        at[i] = headers_bytes + frame * full_frame + (within ? 1 + varint_bytes(frame_bytes) + within : 0);
    }
    return (xl_frame_mark){.position = at[0], .size = end > first ? at[1] - at[0] : 0, .priority = mark->priority};
}

/* Returns the length of the first frame in vec, including its header; 0: vec does not contain the complete header. */
static uint64_t first_frame_bytes(const nghttp3_vec *vec, size_t count) {
    uint8_t head[16];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < vec[i].len && n < sizeof head; k++)
            head[n++] = vec[i].base[k];
    const uint8_t *at = head, *end = head + n;
    uint64_t type, length;
    if (!http_varint_get(&at, end, &type) || !http_varint_get(&at, end, &length))
        return 0;
    return (uint64_t)(at - head) + length;
}

/* ---- session ---- */

static h3_session *new_session(xl_connection *connection, const h3_callbacks *callbacks, bool is_server) {
    h3_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->connection = connection;
    s->callbacks = *callbacks;
    s->is_server = is_server;
    s->log = h3_log_new(connection, is_server);
    s->grease = xl_connection_grease(connection);
    s->peer.max_field_section_bytes = UINT64_MAX;
    if (is_server)
        s->max_client_streams = CLIENT_STREAM_SLACK;
    if (h3_make(s) != 0) {
        h3_log_free(s->log);
        free(s);
        return NULL;
    }
    return s;
}

h3_session *h3_session_client(xl_connection *connection, const h3_callbacks *callbacks) {
    return new_session(connection, callbacks, false);
}

h3_session *h3_session_server(xl_connection *connection, const h3_callbacks *callbacks) {
    return new_session(connection, callbacks, true);
}

void h3_session_free(h3_session *s) {
    if (!s)
        return;
    nghttp3_conn_del(s->h3);
    while (s->streams)
        h3_stream_free(s, s->streams);
    while (s->controls)
        h3_forget_control(s, s->controls->id);
    h3_log_free(s->log);
    free(s);
}

/* Opens the critical streams (RFC 9114 section 6.2.1, RFC 9204 section 4.2). Before the end of the handshake, a resumed
 * session may allow fewer streams; then they are opened at its end. */
static void open_critical_streams(h3_session *s) {
    while (s->critical_count < 3) {
        uint64_t *id = &s->critical[s->critical_count];
        if (xl_stream_open(s->connection, false, id) != 0) {
            if (s->is_connected)
                fail(s, NGHTTP3_ERR_H3_GENERAL_PROTOCOL_ERROR);
            return;
        }
        s->critical_count++;
        (void)xl_stream_set_priority(s->connection, *id, 0);
    }
    fail(s, h3_bind(s));
    s->ready = !s->failed;
}

/* ---- Reserved streams, frames and settings ---- */

/* Sends reserved bytes: a frame at a frame boundary of the stream, or with `fin` the stream. */
static void put_reserved(h3_session *s, uint64_t id, const uint8_t *bytes, size_t len, bool fin) {
    if (xl_stream_send(s->connection, id, bytes, len, fin, NULL) == (ssize_t)len)
        h3_log_bytes(s->log, id, true, bytes, len, s->now);
}

/* Opens one reserved stream as soon as the peer allows a further stream. It has the priority of critical streams, or
 * responses would delay it until the end of the connection. */
static void open_reserved_stream(h3_session *s) {
    uint8_t bytes[H3_GREASE_BYTES];
    uint64_t id;
    if (!s->grease || s->has_reserved_stream || !s->is_connected || xl_stream_open(s->connection, false, &id) != 0)
        return;
    s->has_reserved_stream = true;
    (void)xl_stream_set_priority(s->connection, id, 0);
    put_reserved(s, id, bytes, h3_grease_stream(s->grease, bytes), true);
}

/* Sends the reserved frame, before the first request's HEADERS. */
static void put_reserved_frame(h3_session *s, uint64_t id) {
    uint8_t bytes[H3_GREASE_BYTES];
    if (!s->grease || s->has_reserved_frame || xl_stream_send_capacity(s->connection, id) < sizeof bytes)
        return;
    s->has_reserved_frame = true;
    put_reserved(s, id, bytes, h3_grease_frame(s->grease, bytes), false);
}

/* Adds a reserved setting and a reserved frame to nghttp3's first bytes on the control stream, because nghttp3 has no
 * function for reserved settings. False: nothing was sent, and the caller sends the bytes. */
static bool put_reserved_settings(h3_session *s, const nghttp3_vec *vec, size_t count, size_t *all) {
    uint8_t begin[H3_GREASE_BYTES], bytes[2 * H3_GREASE_BYTES];
    if (!s->grease || s->has_reserved_settings)
        return false;
    s->has_reserved_settings = true;
    *all = 0;
    for (size_t i = 0; i < count; i++) {
        if (vec[i].len > sizeof begin - *all)
            return false;
        memcpy(begin + *all, vec[i].base, vec[i].len);
        *all += vec[i].len;
    }
    const size_t len = h3_grease_control(s->grease, begin, *all, bytes);
    if (len == 0 || xl_stream_send_capacity(s->connection, s->critical[0]) < len)
        return false;
    put_reserved(s, s->critical[0], bytes, len, false);
    return true;
}

/* ---- The server's settings ---- */

static void recall_settings(h3_session *s) {
    size_t len;
    const uint8_t *bytes = s->is_server ? NULL : xl_connection_remembered(s->connection, &len);
    s->peer.max_field_section_bytes = UINT64_MAX;
    s->has_remembered = bytes && len > 0 && h3_settings_parse(bytes, len, &s->peer_remembered);
    if (s->has_remembered)
        s->peer = s->peer_remembered;
}

/* Checks that a server that accepted 0-RTT data does not reduce its settings (RFC 9114 section 7.2.4.2), and remembers
 * them. */
static void take_settings(h3_session *s, uint64_t id, const uint8_t *data, size_t len) {
    if (s->is_server || !h3_settings_feed(&s->settings, id, data, len) ||
        !h3_settings_parse(s->settings.found, s->settings.found_len, &s->peer))
        return;
    xl_connection_remember(s->connection, s->settings.found, s->settings.found_len);
    if (!s->has_remembered || !xl_connection_is_early_accepted(s->connection) ||
        !h3_settings_are_reduced(&s->peer, &s->peer_remembered))
        return;
    s->failed = true;
    xl_connection_close(s->connection, H3_SETTINGS_ERROR, "the server took 0-RTT data and allows less than before",
                        s->now);
}

/* Returns a new stream for a client's request, after raising nghttp3's stream limit; NULL: out of memory. */
static h3_stream *accept_stream(h3_session *s, uint64_t id) {
    uint64_t limit = id / 4 + 1 + CLIENT_STREAM_SLACK;
    if (limit > s->max_client_streams) {
        s->max_client_streams = limit;
        nghttp3_conn_set_max_client_streams_bidi(s->h3, limit);
    }
    return h3_stream_new(s, (int64_t)id);
}

/* Counts n more bytes of a request's head. False: they exceed a limit. */
static bool has_room_for(h3_session *s, h3_stream *st, size_t n) {
    if (!s->is_server || st->head_done)
        return true;
    if (st->head_bytes + n > H3_MAX_HEAD_BYTES || s->heads_bytes + n > H3_MAX_HEADS_BYTES)
        return false;
    st->head_bytes += n;
    s->heads_bytes += n;
    return true;
}

/* After bytes of a control stream, which may have had PRIORITY_UPDATE frames. nghttp3 has no callback for them. */
static void apply_priorities(h3_session *s) {
    for (const h3_stream *st = s->streams; st; st = st->next)
        if (st->head_done && !st->over)
            h3_apply_priority(s, st);
}

static void read_stream(h3_session *s, uint64_t id) {
    uint8_t room[1 + READ_BYTES];
    bool fin = false, may_have_more = true;
    h3_stream *st = NULL;
    while (may_have_more && !fin && !s->failed) {
        ssize_t n = xl_stream_read(s->connection, id, room + 1, READ_BYTES, &fin);
        if (n < 0 || (n == 0 && !fin))
            return;
        const uint8_t *data = room + 1;
        size_t len = (size_t)n;
        may_have_more = n == READ_BYTES;
        if (is_client_bidi(id)) {
            st = h3_stream_find(s, (int64_t)id);
            if (!st && s->is_server)
                st = accept_stream(s, id);
            if (!st) {
                fail(s, NGHTTP3_ERR_NOMEM);
                return;
            }
            if (st->read_ended)
                return;
            st->read_ended = fin;
            if (st->over)
                continue; /* the stream is over; reading only returns flow control credit */
            if (!has_room_for(s, st, len)) {
                h3_stream_refuse(s, st, H3_EXCESSIVE_LOAD);
                continue;
            }
        }
        if (s->is_server && !is_client_bidi(id)) {
            h3_control *c = h3_control_of(s, id);
            data = c ? h3_control_pass(c, room, len, fin, &len) : NULL;
            if (!data) {
                fail(s, c ? NGHTTP3_ERR_H3_FRAME_ERROR : NGHTTP3_ERR_NOMEM);
                return;
            }
            if (len == 0 && !fin)
                continue;
            h3_note_opening(s, c, data, len);
        }
        take_settings(s, id, data, len);
        if (s->failed)
            return;
        nghttp3_ssize rv = nghttp3_conn_read_stream(s->h3, (int64_t)id, data, len, fin);
        if (s->is_server && !st && rv >= 0)
            apply_priorities(s);
        h3_log_bytes(s->log, id, false, data, len, s->now); /* after nghttp3, so that HEADERS are logged before DATA */
        /* rv is the number of consumed bytes, without payload of DATA frames. Only payload leaves nghttp3 without
         * output. */
        s->is_flushed &= rv == 0 && !fin;
        /* A stream error, for example a body of another length than announced (RFC 9114 section 4.1.2). */
        if (rv == NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING && st)
            h3_stream_refuse(s, st, H3_MESSAGE_ERROR);
        else if (rv < 0)
            fail(s, (int)rv);
    }
}

static void close_stream(h3_session *s, uint64_t id, uint64_t error_code) {
    const int rv = nghttp3_conn_close_stream(s->h3, (int64_t)id, error_code);
    fail(s, rv == NGHTTP3_ERR_STREAM_NOT_FOUND ? 0 : rv);
    h3_forget_control(s, id);
}

/* Handles RESET_STREAM. */
static void on_reset(h3_session *s, uint64_t id, uint64_t error_code) {
    if (!is_client_bidi(id)) {
        close_stream(s, id, error_code);
        return;
    }
    h3_stream *st = h3_stream_find(s, (int64_t)id);
    if (!st)
        st = s->is_server ? accept_stream(s, id) : NULL;
    if (!st)
        return;
    st->read_ended = true;
    fail(s, nghttp3_conn_shutdown_stream_read(s->h3, (int64_t)id));
    if (s->failed)
        return;
    h3_stream_abort(s, st, error_code);
    h3_stream_drop(s, id, H3_REQUEST_CANCELLED);
}

static bool is_critical(const h3_session *s, uint64_t id) {
    for (size_t i = 0; i < s->critical_count; i++)
        if (s->critical[i] == id)
            return true;
    return false;
}

/* Handles STOP_SENDING. */
static void on_stopped(h3_session *s, uint64_t id, uint64_t error_code) {
    if (!is_client_bidi(id)) {
        if (is_critical(s, id))
            fail(s, NGHTTP3_ERR_H3_CLOSED_CRITICAL_STREAM);
        return; /* a peer need not read a stream of a type that it does not know */
    }
    nghttp3_conn_shutdown_stream_write(s->h3, (int64_t)id);
    h3_stream *st = h3_stream_find(s, (int64_t)id);
    if (!st || !s->is_server)
        return; /* a client's request has no body: the response may still come (RFC 9114 section 4.1) */
    h3_stream_abort(s, st, error_code);
    if (!st->read_ended)
        (void)xl_stream_stop(s->connection, id, H3_REQUEST_CANCELLED);
}

static void on_done(h3_session *s, uint64_t id) {
    close_stream(s, id, H3_NO_ERROR);
    h3_stream *st = h3_stream_find(s, (int64_t)id);
    if (st) /* nghttp3 did not know the stream, so it has not called on_stream_close() */
        h3_stream_free(s, st);
}

/* Ends a rest if nghttp3 needs the event. False: it does not, or the session has failed. */
static bool wake_for(h3_session *s, xl_event_type type) {
    if (type != XL_EVENT_STREAM_READABLE && type != XL_EVENT_STREAM_WRITABLE && type != XL_EVENT_STREAM_RESET &&
        type != XL_EVENT_STREAM_STOPPED && type != XL_EVENT_STREAM_DONE)
        return false;
    fail(s, h3_wake(s));
    return !s->failed;
}

void h3_on_event(h3_session *s, const xl_event *event, uint64_t now) {
    if (s->failed)
        return;
    s->now = now;
    if (!s->h3 && !wake_for(s, event->type))
        return;
    s->is_flushed &= event->type == XL_EVENT_STREAM_READABLE;
    switch (event->type) {
    case XL_EVENT_EARLY:
        recall_settings(s);
        open_critical_streams(s);
        break;
    case XL_EVENT_CONNECTED:
        s->is_connected = true;
        if (!s->ready)
            open_critical_streams(s);
        break;
    case XL_EVENT_STREAM_READABLE:
        read_stream(s, event->stream_id);
        break;
    case XL_EVENT_STREAM_WRITABLE:
        fail(s, nghttp3_conn_unblock_stream(s->h3, (int64_t)event->stream_id));
        break;
    case XL_EVENT_STREAM_RESET:
        on_reset(s, event->stream_id, event->error_code);
        break;
    case XL_EVENT_STREAM_STOPPED:
        on_stopped(s, event->stream_id, event->error_code);
        break;
    case XL_EVENT_STREAM_DONE:
        on_done(s, event->stream_id);
        break;
    default:
        break;
    }
}

/* Writes payload of a DATA frame from the body's source into the transport's send buffer, as far as there is room.
 * Returns the number of bytes, or a negative xl_error. */
static ssize_t send_payload(h3_session *s, h3_stream *st, size_t len, bool fin, const xl_frame_mark *mark) {
    const uint64_t id = (uint64_t)st->id, offset = st->body_framed - st->chunk_left;
    size_t taken = 0;
    while (taken < len) {
        uint8_t *at;
        const ssize_t n = xl_stream_reserve(s->connection, id, len - taken, &at);
        if (n <= 0)
            return n < 0 ? n : (ssize_t)taken;
        const size_t piece = (size_t)n;
        if (st->has_body && !st->body.read(st->body.user, offset + taken, at, piece)) {
            h3_stream_refuse(s, st, H3_INTERNAL_ERROR);
            return XL_ERR_STREAM_STATE;
        }
        h3_log_bytes(s->log, id, true, at, piece, s->now);
        taken += piece;
        const int error = xl_stream_commit(s->connection, id, piece, fin && taken == len, mark);
        if (error)
            return error;
        mark = NULL;
    }
    return (ssize_t)taken;
}

/* Copies nghttp3's bytes, i.e. all except payload, to the transport. */
static ssize_t send_bytes(h3_session *s, uint64_t id, const nghttp3_vec *vec, bool fin, const xl_frame_mark *mark) {
    const ssize_t n = xl_stream_send(s->connection, id, vec->base, vec->len, fin, mark);
    if (n > 0)
        h3_log_bytes(s->log, id, true, vec->base, (size_t)n, s->now);
    return n;
}

static bool is_payload(const nghttp3_vec *vec) {
    return vec->base >= h3_payload && vec->base < h3_payload + sizeof h3_payload;
}

/* Passes vec to the transport. Returns the number of bytes that it took, or a negative xl_error. *all: it took
 * everything, including the FIN. */
static ssize_t send_vecs(h3_session *s, uint64_t id, h3_stream *st, const nghttp3_vec *vec, size_t count, bool fin,
                         const xl_frame_mark *mark, bool *all) {
    size_t taken = 0;
    *all = false;
    if (count == 0) {
        ssize_t n = xl_stream_send(s->connection, id, NULL, 0, fin, NULL);
        *all = n == 0;
        return n;
    }
    for (size_t i = 0; i < count; i++) {
        const bool is_end = fin && i == count - 1;
        const ssize_t n = st && is_payload(&vec[i]) ? send_payload(s, st, vec[i].len, is_end, mark)
                                                    : send_bytes(s, id, &vec[i], is_end, mark);
        if (n < 0)
            return n;
        taken += (size_t)n;
        if ((size_t)n < vec[i].len)
            return (ssize_t)taken;
        mark = NULL;
    }
    *all = true;
    return (ssize_t)taken;
}

/* Tells nghttp3 that len bytes are sent and acknowledged: they have been copied, so it may free them. */
static int took(h3_session *s, int64_t id, size_t len) {
    int rv = nghttp3_conn_add_write_offset(s->h3, id, len);
    return rv != 0 ? rv : nghttp3_conn_add_ack_offset(s->h3, id, len);
}

static int after_write(h3_session *s, h3_stream *st, size_t taken, bool all, bool fin) {
    st->stream_bytes += taken;
    if (st->waiting && st->chunk_left == 0) {
        st->waiting = false;
        int rv = nghttp3_conn_resume_stream(s->h3, st->id);
        if (rv != 0)
            return rv;
    }
    if (all && fin && !st->written) {
        st->written = true;
        h3_stream_close_body(st);
        if (s->is_server && !st->over && s->callbacks.response_written)
            s->callbacks.response_written(s->callbacks.user, (uint64_t)st->id);
    }
    return 0;
}

/* Before the response's first byte, tells the transport its length. Writes the marked frame's place to *mark; false:
 * there is no mark. */
static bool announce(h3_session *s, const h3_stream *st, const nghttp3_vec *vec, size_t count, xl_frame_mark *mark) {
    uint64_t headers_bytes = first_frame_bytes(vec, count);
    if (headers_bytes == 0)
        return false;
    const h3_body_mark whole = {.size = st->body.length};
    xl_frame_mark all = h3_mark_in_stream(headers_bytes, st->body.length, &whole);
    (void)xl_stream_expect(s->connection, (uint64_t)st->id, all.position + all.size);
    *mark = h3_mark_in_stream(headers_bytes, st->body.length, &st->mark);
    return st->mark.size > 0;
}

static int pump_stream(h3_session *s, int64_t id, const nghttp3_vec *vec, size_t count, bool fin) {
    h3_stream *st = h3_stream_find(s, id);
    xl_frame_mark mark = {0};
    size_t whole;
    if (s->critical_count > 0 && id == (int64_t)s->critical[0] && put_reserved_settings(s, vec, count, &whole))
        return took(s, id, whole);
    if (st && st->sent_fields) {
        h3_log_headers(s->log, (uint64_t)id, true, st->sent_fields, s->now);
        st->sent_fields = NULL;
    }
    bool marked = st && st->has_body && st->stream_bytes == 0 && announce(s, st, vec, count, &mark);
    bool all;
    ssize_t n = send_vecs(s, (uint64_t)id, st, vec, count, fin, marked ? &mark : NULL, &all);
    if (n < 0) { /* reset by either side: nothing more is sent */
        nghttp3_conn_shutdown_stream_write(s->h3, id);
        return is_client_bidi((uint64_t)id) ? 0 : NGHTTP3_ERR_H3_CLOSED_CRITICAL_STREAM;
    }
    int rv = took(s, id, (size_t)n);
    if (rv == 0 && st)
        rv = after_write(s, st, (size_t)n, all, fin);
    if (rv == 0 && !all) {
        nghttp3_conn_block_stream(s->h3, id);
        s->is_restless |= !is_client_bidi((uint64_t)id);
    }
    return rv;
}

void h3_pump(h3_session *s, uint64_t now) {
    s->now = now;
    if (s->ready && !s->failed)
        open_reserved_stream(s);
    while (s->h3 && s->ready && !s->failed && !s->is_flushed) {
        nghttp3_vec vec[MAX_VECS];
        int64_t id = -1;
        int fin = 0;
        nghttp3_ssize count = nghttp3_conn_writev_stream(s->h3, &id, &fin, vec, MAX_VECS);
        s->is_flushed = count == 0 && id == -1;
        if (s->is_flushed)
            return;
        fail(s, count < 0 ? (int)count : pump_stream(s, id, vec, (size_t)count, fin != 0));
    }
}

/* ---- requests and responses ---- */

static nghttp3_nv field(const char *name, const char *value) {
    return (nghttp3_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = NGHTTP3_NV_FLAG_NONE};
}

static size_t append_fields(nghttp3_nv *nv, size_t at, const h3_header *headers, size_t count) {
    for (size_t i = 0; i < count; i++)
        nv[at++] = field(headers[i].name, headers[i].value);
    return at;
}

static json_t *sent_fields(const h3_session *s, const nghttp3_nv *nv, size_t count) {
    json_t *fields = h3_log_fields(s->log);
    for (size_t i = 0; fields && i < count; i++)
        h3_log_field(fields, nv[i].name, nv[i].namelen, nv[i].value, nv[i].valuelen);
    return fields;
}

/* Size of a request's field section: name, value and 32 bytes for each field (RFC 9114 section 4.2.2). */
static uint64_t field_bytes(const char *method, const char *authority, const char *path, const h3_header *headers,
                            size_t count) {
    uint64_t bytes = strlen(":method:scheme:authority:path") + strlen("https") + 4 * 32 + strlen(method) +
                     strlen(authority) + strlen(path);
    for (size_t i = 0; i < count; i++)
        bytes += strlen(headers[i].name) + strlen(headers[i].value) + 32;
    return bytes;
}

int h3_submit(h3_session *s, const char *method, const char *authority, const char *path, const h3_header *headers,
              size_t header_count, uint64_t *stream) {
    if (s->is_server || header_count > MAX_HEADERS)
        return XL_ERR_ARGUMENT;
    if (s->failed || s->goaway_received)
        return XL_ERR_CLOSED;
    bool is_safe = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (!s->ready || !(s->is_connected || is_safe))
        return XL_ERR_STREAM_STATE;
    s->is_flushed = false;
    if (!s->is_connected &&
        field_bytes(method, authority, path, headers, header_count) > s->peer.max_field_section_bytes)
        return XL_ERR_ARGUMENT;
    int rv = xl_stream_open(s->connection, true, stream);
    if (rv != 0)
        return rv;
    if (s->is_connected)
        put_reserved_frame(s, *stream);
    nghttp3_nv nv[MAX_HEADERS + 4] = {field(":method", method), field(":scheme", "https"),
                                      field(":authority", authority), field(":path", path)};
    size_t count = append_fields(nv, 4, headers, header_count);
    h3_stream *st = h3_stream_new(s, (int64_t)*stream);
    if (!st || nghttp3_conn_submit_request(s->h3, (int64_t)*stream, nv, count, NULL, st) != 0) {
        if (st)
            st->over = true; /* freed by on_done() */
        h3_stream_drop(s, *stream, H3_REQUEST_CANCELLED);
        return XL_ERR_MEMORY;
    }
    st->sent_fields = sent_fields(s, nv, count);
    return 0;
}

static int submit_response(h3_session *s, h3_stream *st, unsigned status, const h3_header *headers, size_t header_count,
                           const h3_body *body) {
    char status_text[4];
    snprintf(status_text, sizeof status_text, "%03u", status % 1000);
    nghttp3_nv nv[MAX_HEADERS + 1] = {field(":status", status_text)};
    size_t count = append_fields(nv, 1, headers, header_count);
    nghttp3_data_reader reader = {.read_data = h3_read_data};
    if (nghttp3_conn_submit_response(s->h3, st->id, nv, count, body ? &reader : NULL) != 0)
        return XL_ERR_MEMORY;
    st->sent_fields = sent_fields(s, nv, count);
    return 0;
}

int h3_respond(h3_session *s, uint64_t stream, unsigned status, const h3_header *headers, size_t header_count,
               const h3_body *body, const h3_body_mark *mark) {
    h3_stream *st = s->failed || !s->ready ? NULL : h3_stream_find(s, (int64_t)stream);
    int rv = 0;
    if (!st || st->over || st->responded)
        rv = XL_ERR_STREAM_STATE;
    else if (!s->is_server || header_count > MAX_HEADERS)
        rv = XL_ERR_ARGUMENT;
    else
        rv = submit_response(s, st, status, headers, header_count, body);
    s->is_flushed = false;
    if (rv != 0) {
        if (body && body->close)
            body->close(body->user);
        return rv;
    }
    st->responded = true;
    if (body) {
        st->has_body = true;
        st->body = *body;
        st->mark = mark ? *mark : (h3_body_mark){0};
    }
    return 0;
}

void h3_cancel(h3_session *s, uint64_t stream, uint64_t error_code) {
    h3_stream *st = h3_stream_find(s, (int64_t)stream);
    if (!st || s->failed)
        return;
    st->over = true;
    h3_stream_close_body(st);
    h3_stream_drop(s, stream, error_code);
}
