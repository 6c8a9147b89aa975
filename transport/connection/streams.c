#include "connection/streams.h"

#include <stdlib.h>
#include <string.h>

#include "connection/connection.h"
#include "connection/room.h"
#include "connection/state.h"

#define DEFAULT_PRIORITY 3 /* RFC 9218 urgency */

/* Returns the record that r comes behind in the queue; NULL: none. A packet of the marked frame that is sent again
 * passes packets of the rest. */
static xl_sent_frame *predecessor(const xl_stream *s, const xl_unacked_queue *q, const xl_sent_frame *r,
                                  bool frame_first) {
    uint64_t frame_end = s->has_mark ? s->mark.position + s->mark.size : 0;
    if (!frame_first || r->offset >= frame_end || !q->tail || q->tail->offset < frame_end)
        return q->tail;
    xl_sent_frame *last = NULL;
    for (xl_sent_frame *at = q->head; at->offset < frame_end; at = at->queue_next)
        last = at;
    return last;
}

void xl_conn_unacked_push(xl_stream *s, xl_sent_frame *r, bool frame_first) {
    xl_unacked_queue *q = &s->unacked[r->path];
    r->is_queued = true;
    r->queue_prev = predecessor(s, q, r, frame_first);
    r->queue_next = r->queue_prev ? r->queue_prev->queue_next : q->head;
    if (r->queue_prev)
        r->queue_prev->queue_next = r;
    else
        q->head = r;
    if (r->queue_next)
        r->queue_next->queue_prev = r;
    else
        q->tail = r;
    q->bytes += r->len;
}

void xl_conn_unacked_remove(xl_stream *s, xl_sent_frame *r) {
    xl_unacked_queue *q = &s->unacked[r->path];
    if (r->queue_prev)
        r->queue_prev->queue_next = r->queue_next;
    else
        q->head = r->queue_next;
    if (r->queue_next)
        r->queue_next->queue_prev = r->queue_prev;
    else
        q->tail = r->queue_prev;
    r->is_queued = false;
    q->bytes -= r->len;
}

/* ---- The table: sorted by stream ID; new ones nearly always go to the end ---- */

static size_t lower_bound(const xl_connection *c, uint64_t id) {
    size_t lo = 0, hi = c->streams.count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c->streams.at[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

xl_stream *xl_conn_stream(const xl_connection *c, uint64_t id) {
    xl_stream *newest = c->streams.count > 0 ? c->streams.at[c->streams.count - 1] : NULL;
    if (newest && newest->id == id) /* nearly always */
        return newest;
    size_t at = lower_bound(c, id);
    return at < c->streams.count && c->streams.at[at]->id == id ? c->streams.at[at] : NULL;
}

static void send_list_insert(xl_connection *c, xl_stream *s) {
    if (s->in_send_list)
        return;
    xl_stream *prev = NULL, *at = c->streams.send_head;
    while (at && xl_conn_is_sent_before(at, s)) {
        prev = at;
        at = at->send_next;
    }
    s->send_prev = prev;
    s->send_next = at;
    if (prev)
        prev->send_next = s;
    else
        c->streams.send_head = s;
    if (at)
        at->send_prev = s;
    s->in_send_list = true;
}

static void send_list_remove(xl_connection *c, xl_stream *s) {
    if (!s->in_send_list)
        return;
    if (s->send_prev)
        s->send_prev->send_next = s->send_next;
    else
        c->streams.send_head = s->send_next;
    if (s->send_next)
        s->send_next->send_prev = s->send_prev;
    s->in_send_list = false;
}

static bool is_local(const xl_connection *c, uint64_t id) {
    return ((id & 1) != 0) == c->is_server;
}

static uint64_t initial_send_limit(const xl_connection *c, uint64_t id) {
    if (id & 2)
        return c->peer_params.initial_max_stream_data_uni;
    return is_local(c, id) ? c->peer_params.initial_max_stream_data_bidi_remote
                           : c->peer_params.initial_max_stream_data_bidi_local;
}

void xl_conn_apply_stream_limits(xl_connection *c) {
    c->streams.flow_out.limit = c->peer_params.initial_max_data;
    c->streams.opened[0].limit = c->peer_params.initial_max_streams_bidi;
    c->streams.opened[1].limit = c->peer_params.initial_max_streams_uni;
    for (size_t i = 0; i < c->streams.count; i++)
        c->streams.at[i]->send_flow.limit = initial_send_limit(c, c->streams.at[i]->id);
}

static xl_stream *stream_new(xl_connection *c, uint64_t id) {
    if (c->streams.count == c->streams.cap) {
        size_t cap = c->streams.cap ? 2 * c->streams.cap : 16;
        xl_stream **grown = realloc(c->streams.at, cap * sizeof *grown);
        if (!grown)
            return NULL;
        c->streams.at = grown;
        c->streams.cap = cap;
    }
    xl_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    bool uni = (id & 2) != 0, local = is_local(c, id);
    s->id = id;
    s->priority = DEFAULT_PRIORITY;
    s->has_send = !uni || local;
    s->has_recv = !uni || !local;
    xl_send_init(&s->send, c->config->limits.send_buffer_bytes);
    s->send.budget = &c->streams.budget;
    xl_recv_init(&s->recv);
    xl_flow_out_init(&s->send_flow, initial_send_limit(c, id));
    xl_flow_in_init(&s->recv_flow, c->config->limits.max_stream_data, c->config->limits.most_stream_data);
    s->recv_done = !s->has_recv;
    size_t at = lower_bound(c, id);
    memmove(&c->streams.at[at + 1], &c->streams.at[at], (c->streams.count - at) * sizeof *c->streams.at);
    c->streams.at[at] = s;
    c->streams.count++;
    return s;
}

static void unqueue_records(xl_stream *s) {
    for (size_t i = 0; i < XL_MAX_PATHS; i++)
        while (s->unacked[i].head)
            xl_conn_unacked_remove(s, s->unacked[i].head);
}

static void stream_free(xl_connection *c, xl_stream *s) {
    xl_qlog_stream_gone(c->qlog, s->id);
    c->streams.marked -= s->has_mark;
    unqueue_records(s);
    send_list_remove(c, s);
    xl_send_free(&s->send);
    xl_recv_free(&s->recv);
    free(s);
}

void xl_conn_free_streams(xl_connection *c) {
    for (size_t i = 0; i < c->streams.count; i++)
        stream_free(c, c->streams.at[i]);
    free(c->streams.at);
}

static bool send_is_over(const xl_stream *s) {
    return !s->has_send || s->reset_acked || (!s->reset_pending && !s->reset_sent && xl_send_is_done(&s->send));
}

/* Whether the stream belongs to the send list. Control streams mostly have everything acknowledged and nothing
 * waiting. */
static bool has_to_send(const xl_stream *s) {
    return !xl_send_is_settled(&s->send) || s->writable_wanted;
}

void xl_conn_stream_settle(xl_connection *c, xl_stream *s) {
    if (send_is_over(s) || !has_to_send(s))
        send_list_remove(c, s);
    if (!send_is_over(s) || !s->recv_done)
        return;
    uint64_t id = s->id;
    size_t at = lower_bound(c, id);
    memmove(&c->streams.at[at], &c->streams.at[at + 1], (c->streams.count - at - 1) * sizeof *c->streams.at);
    c->streams.count--;
    stream_free(c, s);
    if (!is_local(c, id)) {
        int kind = (id & 2) != 0;
        c->streams.closed_by_peer[kind]++;
        uint64_t window = kind ? c->config->limits.max_streams_uni : c->config->limits.max_streams_bidi;
        /* Announced in steps of a quarter, so that MAX_STREAMS is not sent for every stream. */
        if (c->streams.closed_by_peer[kind] + window >= c->streams.max_local[kind] + (window + 3) / 4) {
            c->streams.max_local[kind] = c->streams.closed_by_peer[kind] + window;
            c->streams.max_pending[kind] = true;
            xl_conn_wake(c);
        }
    }
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_STREAM_DONE, .stream_id = id});
}

xl_stream *xl_conn_stream_for_frame(xl_connection *c, uint64_t id, bool needs_recv, uint64_t *error) {
    int kind = (id & 2) != 0;
    bool local = is_local(c, id);
    uint64_t number = id >> 2;
    *error = 0;
    if (kind && local == needs_recv) { /* the wrong direction of a unidirectional stream */
        *error = XL_QERR_STREAM_STATE;
        return NULL;
    }
    if (local) {
        if (number >= c->streams.opened[kind].used)
            *error = XL_QERR_STREAM_STATE;
        return *error ? NULL : xl_conn_stream(c, id);
    }
    if (number >= c->streams.max_local[kind]) {
        *error = XL_QERR_STREAM_LIMIT;
        return NULL;
    }
    /* A higher number opens all lower ones of its type (RFC 9000 section 3.2). */
    while (c->streams.opened_by_peer[kind] <= number) {
        uint64_t opened = c->streams.opened_by_peer[kind]++ << 2 | (id & 3);
        if (!stream_new(c, opened)) {
            *error = XL_QERR_INTERNAL;
            return NULL;
        }
    }
    return xl_conn_stream(c, id);
}

void xl_conn_notify_readable(xl_connection *c, xl_stream *s) {
    if (s->readable_queued || s->recv_done || !xl_recv_is_ready(&s->recv))
        return;
    s->readable_queued = true;
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_STREAM_READABLE, .stream_id = s->id});
}

/* Resets the sending half. Nothing is sent any more, so the buffer is freed at once. */
void xl_conn_reset_sending(xl_connection *c, xl_stream *s, uint64_t error_code) {
    s->reset_pending = c->streams.control_dirty = true;
    s->reset_code = error_code;
    s->writable_wanted = false;
    unqueue_records(s);
    xl_send_abandon(&s->send);
    xl_conn_wake(c);
}

void xl_conn_grant_credit(xl_connection *c, uint64_t bytes) {
    c->streams.flow_in.consumed += bytes;
    if (xl_flow_in_should_update(&c->streams.flow_in)) {
        c->streams.max_data_pending = true;
        xl_conn_wake(c);
    }
}

void xl_conn_discard_unread(xl_connection *c, xl_stream *s) {
    uint8_t waste[4096];
    bool fin = false;
    size_t n;
    while ((n = xl_recv_read(&s->recv, waste, sizeof waste, &fin)) > 0)
        xl_conn_grant_credit(c, n);
    if (!fin)
        return;
    s->recv_done = true;
    s->stop_pending = false;
    xl_conn_stream_settle(c, s);
}

void xl_conn_shrink_beside(xl_connection *c, const xl_stream *grown) {
    for (size_t i = 0; i < c->streams.count; i++)
        if (c->streams.at[i] != grown)
            xl_recv_shrink(&c->streams.at[i]->recv);
}

bool xl_conn_expects_data(const xl_connection *c) {
    for (size_t i = 0; i < c->streams.count; i++) {
        const xl_stream *s = c->streams.at[i];
        if ((s->id & 2) == 0 && is_local(c, s->id) && s->send.fin_written && !s->recv_done)
            return true;
    }
    return false;
}

void xl_conn_note_blocked(xl_connection *c, xl_stream *s) {
    bool has_more = s->send.sent < s->send.written || s->writable_wanted;
    if (!has_more || xl_conn_is_reset(s))
        return;
    if (xl_flow_out_take_blocked(&s->send_flow))
        s->blocked_pending = c->streams.control_dirty = true;
    if (xl_flow_out_take_blocked(&c->streams.flow_out))
        c->streams.data_blocked_pending = true;
}

/* ---- Public API ---- */

int xl_stream_open(xl_connection *c, bool bidirectional, uint64_t *id) {
    int kind = !bidirectional;
    xl_conn_touch(c);
    if (!xl_conn_is_live(c))
        return XL_ERR_CLOSED;
    if (!c->handshake.peer_params_seen && !c->early.is_offered)
        return XL_ERR_STREAM_LIMIT;
    xl_flow_out *opened = &c->streams.opened[kind];
    if (xl_flow_out_left(opened) == 0) {
        if (xl_flow_out_take_blocked(opened)) {
            c->streams.blocked_pending[kind] = true;
            xl_conn_wake(c);
        }
        return XL_ERR_STREAM_LIMIT;
    }
    *id = opened->used << 2 | (uint64_t)kind << 1 | c->is_server;
    if (!stream_new(c, *id))
        return XL_ERR_MEMORY;
    opened->used++;
    return 0;
}

static void grant_credit(xl_connection *c, xl_stream *s, size_t n) {
    s->recv_flow.consumed += n;
    if (s->recv.final_size == UINT64_MAX && xl_flow_in_should_update(&s->recv_flow)) {
        s->max_data_pending = c->streams.control_dirty = true;
        xl_conn_wake(c);
    }
    xl_conn_grant_credit(c, n);
}

ssize_t xl_stream_read(xl_connection *c, uint64_t id, uint8_t *buf, size_t cap, bool *fin) {
    xl_stream *s = xl_conn_stream(c, id);
    xl_conn_touch(c);
    if (!s || !s->has_recv || s->peer_reset)
        return XL_ERR_STREAM_STATE;
    *fin = false;
    if (s->recv_done) {
        *fin = true;
        return 0;
    }
    size_t n = xl_recv_read(&s->recv, buf, cap, fin);
    grant_credit(c, s, n);
    if (*fin) {
        s->recv_done = true;
        s->readable_queued = false;
        xl_conn_stream_settle(c, s);
    } else if (n < cap) {
        s->readable_queued = false; /* everything was read: the next data brings a new event */
    }
    return (ssize_t)n;
}

/* Returns the stream if the application may write to it, else NULL and the reason in *error. */
static xl_stream *writable_stream(xl_connection *c, uint64_t id, ssize_t *error) {
    xl_stream *s = xl_conn_is_live(c) ? xl_conn_stream(c, id) : NULL;
    const bool is_writable = s && s->has_send && !s->send.fin_written && !xl_conn_is_reset(s);
    *error = xl_conn_is_live(c) ? XL_ERR_STREAM_STATE : XL_ERR_CLOSED;
    return is_writable ? s : NULL;
}

/* Returns how many of `len` bytes the stream accepts now. */
static size_t make_room(xl_connection *c, xl_stream *s, size_t len) {
    xl_conn_raise_send_limit(c, s);
    size_t room = xl_conn_send_room(c, s);
    if (s->send.cap == 0)
        xl_send_reserve(&s->send, xl_conn_announced_bytes(c, s, room));
    return len < room ? len : room;
}

static void set_mark(xl_connection *c, xl_stream *s, const xl_frame_mark *mark) {
    if (!mark)
        return;
    c->streams.marked -= s->has_mark;
    s->has_mark = mark->size > 0;
    c->streams.marked += s->has_mark;
    s->mark = *mark;
}

/* After bytes were written. is_all: the application had no more to write. */
static void after_write(xl_connection *c, xl_stream *s, bool is_all, bool fin) {
    if (fin && is_local(c, s->id))
        c->migration.expecting_since = XL_NEVER; /* xl_conn_transmit() sets the time */
    if (has_to_send(s))
        send_list_insert(c, s);
    xl_conn_note_blocked(c, s);
    if (is_all)
        xl_conn_offer_room(c); /* the next stream may have room */
    xl_conn_wake(c);
}

ssize_t xl_stream_send(xl_connection *c, uint64_t id, const uint8_t *data, size_t len, bool fin,
                       const xl_frame_mark *mark) {
    ssize_t error;
    xl_conn_touch(c);
    xl_stream *s = writable_stream(c, id, &error);
    if (!s)
        return error;
    set_mark(c, s, mark);
    ssize_t taken = xl_send_write(&s->send, data, make_room(c, s, len));
    if (taken < 0)
        return taken;
    if ((size_t)taken < len)
        xl_conn_await_room(c, s);
    else if (fin)
        xl_send_finish(&s->send);
    after_write(c, s, (size_t)taken == len, fin);
    return taken;
}

ssize_t xl_stream_reserve(xl_connection *c, uint64_t id, size_t len, uint8_t **at) {
    ssize_t error;
    xl_conn_touch(c);
    xl_stream *s = writable_stream(c, id, &error);
    if (!s)
        return error;
    const size_t take = make_room(c, s, len);
    s->asked = len;
    const size_t given = xl_send_space(&s->send, take, at);
    if (given == 0 && take > 0)
        return XL_ERR_MEMORY;
    if (given == 0 && len > 0)
        xl_conn_await_room(c, s);
    return (ssize_t)given;
}

int xl_stream_commit(xl_connection *c, uint64_t id, size_t len, bool fin, const xl_frame_mark *mark) {
    ssize_t error;
    xl_conn_touch(c);
    xl_stream *s = writable_stream(c, id, &error);
    if (!s)
        return (int)error;
    const bool is_all = fin || len < s->send.lent || len == s->asked;
    if (!xl_send_wrote(&s->send, len))
        return XL_ERR_ARGUMENT;
    set_mark(c, s, mark);
    if (fin)
        xl_send_finish(&s->send);
    after_write(c, s, is_all, fin);
    return XL_OK;
}

size_t xl_stream_send_capacity(const xl_connection *c, uint64_t id) {
    const xl_stream *s = xl_conn_stream(c, id);
    return s && xl_conn_is_live(c) && s->has_send && !xl_conn_is_reset(s) ? xl_conn_send_room(c, s) : 0;
}

int xl_stream_expect(xl_connection *c, uint64_t id, uint64_t bytes) {
    xl_stream *s = xl_conn_stream(c, id);
    xl_conn_touch(c);
    if (!s || !s->has_send)
        return XL_ERR_STREAM_STATE;
    s->expected = bytes;
    return 0;
}

int xl_stream_set_priority(xl_connection *c, uint64_t id, uint8_t priority) {
    xl_stream *s = xl_conn_stream(c, id);
    xl_conn_touch(c);
    if (!s)
        return XL_ERR_STREAM_STATE;
    const bool moves = s->in_send_list && s->priority != priority;
    s->priority = priority;
    if (moves) {
        send_list_remove(c, s);
        send_list_insert(c, s);
    }
    return 0;
}

int xl_stream_reset(xl_connection *c, uint64_t id, uint64_t error_code) {
    xl_stream *s = xl_conn_stream(c, id);
    xl_conn_touch(c);
    if (error_code > XL_VARINT_MAX)
        return XL_ERR_ARGUMENT;
    if (!s || !s->has_send || send_is_over(s))
        return XL_ERR_STREAM_STATE;
    if (!xl_conn_is_reset(s))
        xl_conn_reset_sending(c, s, error_code);
    return 0;
}

int xl_stream_stop(xl_connection *c, uint64_t id, uint64_t error_code) {
    xl_stream *s = xl_conn_stream(c, id);
    xl_conn_touch(c);
    if (error_code > XL_VARINT_MAX)
        return XL_ERR_ARGUMENT;
    if (!s || !s->has_recv)
        return XL_ERR_STREAM_STATE;
    if (s->recv_done || s->stop_sent || s->stop_pending)
        return 0;
    s->stop_pending = c->streams.control_dirty = true;
    s->stop_code = error_code;
    xl_conn_discard_unread(c, s); /* if everything has arrived, the stream may be gone now */
    xl_conn_wake(c);
    return 0;
}
