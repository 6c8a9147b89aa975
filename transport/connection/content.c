/* What the next packet on a path carries: acknowledgements, control frames, stream data, re-injected stream data. */
#include "connection/content.h"

#include <string.h>

#include "connection/acks.h"
#include "connection/cid_frames.h"
#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/qoe.h"
#include "connection/room.h"
#include "connection/streams.h"
#include "minmax.h"

#define QUIET_PACKETS_MAX 16
#define MIN_STREAM_ROOM   32
#define NEW_TOKEN_BYTES   (1 + 1 + XL_NEW_TOKEN_BYTES) /* the frame: type, length, a token of our own */

/* ---- Acknowledgements ---- */

/* Whether the path was heard of within a probe timeout and no probe of ours on it is unanswered. A path may be dark in
 * one direction only; then its silence does not show that. */
static bool is_live(const xl_connection *c, const xl_path *p) {
    return p->flight.pto_count == 0 && c->now - p->last_received_at < xl_rtt_pto(&p->rtt, XL_MAX_ACK_DELAY_US);
}

const xl_path *xl_content_best_path(const xl_connection *c) {
    const xl_path *best = NULL;
    XL_EACH_PATH(const xl_path, q, c) {
        bool is_better = !best || (q->state == XL_PATH_ACTIVE) > (best->state == XL_PATH_ACTIVE) ||
                         (q->state == best->state && q->rtt.smoothed < best->rtt.smoothed);
        if (xl_path_may_carry_data(q) && q->cids.has_remote && is_better)
            best = q;
    }
    return best;
}

const xl_path *xl_content_ack_path(const xl_connection *c, const xl_path *p) {
    if (p->state == XL_PATH_CLOSED) /* nothing is sent on an abandoned path (RFC 10069 section 3.4.3) */
        return xl_content_best_path(c);
    if (c->config->scheme.ack_path == XL_ACK_ORIGINAL || !c->multipath)
        return p;
    /* The fastest path, but only one that was heard of recently: acknowledgements must not follow a path that has gone
     * dark. And once a round trip the path itself, so that a dark path whose silence is not noticed yet, or cannot be
     * noticed at this end, does not stop the acknowledgements of all others. */
    const xl_path *best = p;
    if (c->now - p->acked_here_at >= p->rtt.smoothed)
        return p;
    XL_EACH_PATH(const xl_path, q, c) {
        if (q->state != XL_PATH_ACTIVE || !q->rtt.has_sample || !is_live(c, q))
            continue;
        if (!best->rtt.has_sample || best->state != XL_PATH_ACTIVE || q->rtt.smoothed < best->rtt.smoothed)
            best = q;
    }
    return best;
}

bool xl_content_is_acknowledged(const xl_connection *c, const xl_path *p) {
    if (!(c->multipath ? p->cids.has_local_path_id : p->index == c->active))
        return false;
    return p->state != XL_PATH_CLOSED || (c->path_ids && xl_path_ids_find(c->path_ids, p->cids.local_path_id));
}

static void add_ecn_counts(xl_builder *b, const xl_space *space, uint8_t *frame, bool has_qoe_field,
                           const xl_qoe *qoe) {
    const xl_ecn_counts *n = &space->ecn.received;
    if (n->ect0 + n->ect1 + n->ce > 0)
        xl_frame_add_ecn_counts(&b->w, frame, has_qoe_field ? xl_frame_qoe_signal_len(qoe) : 0, n->ect0, n->ect1,
                                n->ce);
}

static void put_ack(xl_builder *b, xl_space *space, uint64_t path_id) {
    xl_connection *c = b->c;
    xl_ack_range ranges[XL_ACK_RANGES_MAX];
    bool as_mp = b->level == XL_LEVEL_APP && c->multipath;
    uint64_t type = !as_mp ? XL_FRAME_ACK : c->path_ids ? XL_FRAME_PATH_ACK : XL_FRAME_ACK_MP;
    size_t count = xl_space_ack_ranges(space, ranges, XL_ACK_RANGES_MAX);
    if (count == 0)
        return;
    uint64_t delay = b->level == XL_LEVEL_APP ? (c->now - space->largest_received_at) >> XL_ACK_DELAY_EXPONENT : 0;
    const xl_qoe *qoe = xl_conn_qoe_for_ack(c);
    uint8_t *frame = b->w.p;
    if (xl_frame_put_ack(&b->w, ranges, count, delay, type, path_id, c->qoe.has_field, qoe) == 0)
        return; /* no room */
    if (!xl_builder_note(b, XL_SF_ACK, xl_conn_space_number(c, space), ranges[0].largest)) {
        b->w.p = frame;
        return;
    }
    add_ecn_counts(b, space, frame, type == XL_FRAME_ACK_MP && c->qoe.has_field, qoe);
    if (type == XL_FRAME_ACK_MP && qoe)
        c->qoe.is_fresh = false;
    xl_space_ack_sent(space);
    c->key_update.phase_answered |= b->level == XL_LEVEL_APP && space->phase_first != UINT64_MAX;
}

static void put_path_ack(xl_builder *b, xl_path *p) {
    put_ack(b, p->space, p->cids.local_path_id);
    if (b->path == p)
        p->acked_here_at = b->c->now;
}

void xl_content_put_acks(xl_builder *b) {
    xl_connection *c = b->c;
    if (b->level != XL_LEVEL_APP || !c->multipath) {
        if (xl_space_owes_ack(b->space))
            put_ack(b, b->space, 0);
        return;
    }
    XL_EACH_PATH(xl_path, p, c)
        if (xl_space_owes_ack(p->space) && xl_content_is_acknowledged(c, p) && xl_content_ack_path(c, p) == b->path)
            put_path_ack(b, p);
}

/* ---- Control frames ---- */

bool xl_content_has_control(const xl_connection *c) {
    /* `|` because this runs for every packet, and nearly always no flag is set. */
    if (c->handshake.done_pending | c->handshake.token_pending | c->streams.max_data_pending |
        c->streams.max_pending[0] | c->streams.max_pending[1] | c->streams.data_blocked_pending |
        c->streams.blocked_pending[0] | c->streams.blocked_pending[1] | c->streams.control_dirty)
        return true;
    if (xl_conn_qoe_signal_is_due(c))
        return true;
    if (xl_cid_frames_are_due(c))
        return true;
    if (c->handshake.is_complete && xl_send_pending(&c->level[XL_LEVEL_APP].send, UINT64_MAX)) /* session tickets */
        return true;
    XL_EACH_PATH(const xl_path, p, c)
        if (xl_path_status_is_due(p))
            return true;
    return false;
}

/* Says at which limit the peer holds us back (RFC 9000 sections 19.12 to 19.14), unless it was raised since. */
static void put_blocked(xl_builder *b, const xl_flow_out *f, bool *pending, xl_sf_kind kind, uint64_t id,
                        uint64_t type) {
    if (xl_flow_out_left(f) > 0)
        *pending = false;
    if (!*pending || !xl_builder_reserve(b, XL_FRAME_STREAM_DATA_BLOCKED, kind, id, f->limit))
        return;
    XL_FRAME_PUT(&b->w, type, id, f->limit);
    *pending = false;
}

static void put_streams_blocked(xl_builder *b, int kind) {
    xl_streams *s = &b->c->streams;
    put_blocked(b, &s->opened[kind], &s->blocked_pending[kind], XL_SF_STREAMS_BLOCKED, (uint64_t)kind,
                kind ? XL_FRAME_STREAMS_BLOCKED_UNI : XL_FRAME_STREAMS_BLOCKED_BIDI);
}

/* Data that arrives on several paths is in order when the slowest has delivered its part. */
static uint64_t longest_rtt(const xl_connection *c) {
    uint64_t longest = 0;
    XL_EACH_PATH(const xl_path, p, c)
        if (xl_path_may_carry_data(p) && p->rtt.has_sample)
            longest = xl_max(longest, p->rtt.smoothed);
    return longest;
}

bool xl_content_lacks_limit(const xl_connection *c, const xl_flow_in *f, uint64_t blocked_at) {
    return blocked_at < f->limit && c->now - f->raised >= longest_rtt(c);
}

static void put_stream_control(xl_builder *b, xl_stream *s) {
    xl_connection *c = b->c;
    if (s->reset_pending && xl_builder_reserve(b, XL_FRAME_RESET_STREAM, XL_SF_RESET_STREAM, s->id, 0)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_RESET_STREAM, s->id, s->reset_code, s->send.sent);
        s->reset_pending = false;
        s->reset_sent = true;
    }
    if (s->stop_pending && xl_builder_reserve(b, XL_FRAME_STOP_SENDING, XL_SF_STOP_SENDING, s->id, 0)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_STOP_SENDING, s->id, s->stop_code);
        s->stop_pending = false;
        s->stop_sent = true;
    }
    if (s->max_data_pending && xl_builder_reserve(b, XL_FRAME_MAX_STREAM_DATA, XL_SF_MAX_STREAM_DATA, s->id, 0)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_MAX_STREAM_DATA, s->id, xl_flow_in_update(&s->recv_flow, c->now, longest_rtt(c)));
        s->max_data_pending = false;
    }
    s->blocked_pending &= !xl_conn_is_reset(s);
    put_blocked(b, &s->send_flow, &s->blocked_pending, XL_SF_STREAM_DATA_BLOCKED, s->id, XL_FRAME_STREAM_DATA_BLOCKED);
    if (s->reset_pending || s->stop_pending || s->max_data_pending || s->blocked_pending)
        c->streams.control_dirty = true;
}

static void put_max_streams(xl_builder *b, int kind) {
    xl_connection *c = b->c;
    const uint64_t type = kind ? XL_FRAME_MAX_STREAMS_UNI : XL_FRAME_MAX_STREAMS_BIDI;
    if (!c->streams.max_pending[kind] || !xl_builder_reserve(b, type, XL_SF_MAX_STREAMS, (uint64_t)kind, 0))
        return;
    XL_FRAME_PUT(&b->w, type, 0, c->streams.max_local[kind]);
    c->streams.max_pending[kind] = false;
}

static void put_new_token(xl_builder *b) {
    xl_connection *c = b->c;
    uint8_t token[XL_NEW_TOKEN_BYTES];
    if (!c->handshake.token_pending || xl_builder_left(b) < NEW_TOKEN_BYTES)
        return;
    c->handshake.token_pending = false;
    if (c->hooks.make_token(c->hooks.endpoint, &c->handshake.token_for, token) == 0 &&
        xl_builder_note(b, XL_SF_NEW_TOKEN, 0, 0))
        xl_frame_put_new_token(&b->w, token, sizeof token);
}

static void put_path_status(xl_builder *b, xl_path *p) {
    const xl_path_statuses *s = &p->statuses;
    const uint64_t id = p->cids.remote_path_id;
    const uint64_t type = !b->c->path_ids               ? XL_FRAME_PATH_STATUS
                          : s->own == XL_STATUS_STANDBY ? XL_FRAME_PATH_STATUS_BACKUP
                                                        : XL_FRAME_PATH_STATUS_AVAILABLE;
    if (!xl_path_status_is_due(p) || !xl_builder_reserve(b, type, XL_SF_PATH_STATUS, id, s->own_sequence))
        return;
    XL_FRAME_PUT(&b->w, type, id, s->own_sequence, s->own);
    p->statuses.is_pending = false;
}

void xl_content_put_control(xl_builder *b) {
    xl_connection *c = b->c;
    if (xl_conn_leaves_control_to_another(c, b->path))
        return;
    if (c->handshake.done_pending && xl_builder_reserve(b, XL_FRAME_HANDSHAKE_DONE, XL_SF_HANDSHAKE_DONE, 0, 0)) {
        xl_write_varint(&b->w, XL_FRAME_HANDSHAKE_DONE);
        c->handshake.done_pending = false;
    }
    put_new_token(b);
    xl_builder_put_crypto(b);
    if (c->streams.max_data_pending && xl_builder_reserve(b, XL_FRAME_MAX_DATA, XL_SF_MAX_DATA, 0, 0)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_MAX_DATA, 0, xl_flow_in_update(&c->streams.flow_in, c->now, longest_rtt(c)));
        c->streams.max_data_pending = false;
    }
    put_max_streams(b, 0);
    put_max_streams(b, 1);
    put_blocked(b, &c->streams.flow_out, &c->streams.data_blocked_pending, XL_SF_DATA_BLOCKED, 0,
                XL_FRAME_DATA_BLOCKED);
    put_streams_blocked(b, 0);
    put_streams_blocked(b, 1);
    xl_cid_frames_put(b);
    XL_EACH_PATH(xl_path, p, c)
        put_path_status(b, p);
    xl_conn_put_qoe(b);
    if (!c->streams.control_dirty)
        return;
    c->streams.control_dirty = false;
    for (size_t i = 0; i < c->streams.count; i++)
        put_stream_control(b, c->streams.at[i]);
}

/* ---- Stream data ---- */

static uint64_t stream_credit(const xl_connection *c, const xl_stream *s) {
    uint64_t by_connection = s->send.sent + xl_flow_out_left(&c->streams.flow_out);
    return s->send_flow.limit < by_connection ? s->send_flow.limit : by_connection;
}

static bool is_sending(const xl_stream *s) {
    return !xl_send_is_settled(&s->send) && !xl_conn_is_reset(s);
}

/* End of what there is to send, with bytes that the application has announced, up to the limit of the buffer. */
static uint64_t unsent_end(const xl_stream *s) {
    uint64_t full = s->send.base + s->send.limit, end = s->expected < full ? s->expected : full;
    return end > s->send.written ? end : s->send.written;
}

/* Bytes of the stream that are unsent or lost. */
static uint64_t backlog(const xl_stream *s) {
    if (!is_sending(s) && (!s->writable_wanted || xl_conn_is_reset(s)))
        return 0;
    return unsent_end(s) - s->send.sent + xl_ranges_total(&s->send.lost);
}

bool xl_content_has_unsent(const xl_connection *c) {
    for (const xl_stream *s = c->streams.send_head; s; s = s->send_next)
        if (is_sending(s) && xl_send_pending(&s->send, stream_credit(c, s)))
            return true;
    return false;
}

/* Bytes of the stream that are unsent and that flow control allows, if the connection's allows `credit`. */
static uint64_t allowed_unsent(const xl_stream *s, uint64_t credit) {
    uint64_t end = xl_min(unsent_end(s), s->send_flow.limit);
    return end > s->send.sent ? xl_min(end - s->send.sent, credit) : 0;
}

bool xl_content_fills(const xl_connection *c, uint64_t bytes) {
    uint64_t found = 0, credit = xl_flow_out_left(&c->streams.flow_out);
    for (const xl_stream *s = c->streams.send_head; s && found < bytes; s = s->send_next) {
        if (backlog(s) == 0)
            continue;
        uint64_t unsent = allowed_unsent(s, credit);
        credit -= unsent;
        found += unsent + xl_ranges_total(&s->send.lost);
    }
    return found >= bytes;
}

bool xl_content_is_settled(const xl_connection *c) {
    for (const xl_stream *s = c->streams.send_head; s; s = s->send_next)
        if (is_sending(s) || s->writable_wanted)
            return false;
    return true;
}

static bool choose_copy(xl_connection *c, xl_stream *s, const xl_path *onto, xl_reinjection_scope scope,
                        xl_content_choice *out) {
    if (!xl_conn_choose_copy(c, s, onto, scope, &out->copy))
        return false;
    const xl_sent_frame *r = out->copy.original;
    out->stream = s;
    out->piece = (xl_send_piece){.offset = r->offset + r->copied, .len = r->len - r->copied, .fin = r->fin};
    return true;
}

/* Redundant scheduler: chooses what this path has not carried and that is not acknowledged. False: the path is the
 * first of all in the stream. */
static bool choose_redundant(const xl_stream *s, const xl_path *onto, size_t max_len, xl_content_choice *out) {
    uint64_t from = s->carried_to[onto->index] > s->send.base ? s->carried_to[onto->index] : s->send.base;
    bool carried_fin = s->fin_carried >> onto->index & 1, wants_fin = s->send.fin_sent && !s->send.fin_acked;
    xl_range gap;
    out->is_redundant = true;
    if (max_len > 0 && xl_ranges_first_gap(&s->send.acked, from, s->send.sent, &gap)) {
        size_t len = gap.end - gap.start < max_len ? (size_t)(gap.end - gap.start) : max_len;
        out->piece = (xl_send_piece){.offset = gap.start, .len = len};
        out->piece.fin = wants_fin && gap.start + len == s->send.written;
        return true;
    }
    out->piece = (xl_send_piece){.offset = s->send.written, .fin = true};
    return wants_fin && !carried_fin;
}

static bool choose_for_every_path(xl_connection *c, const xl_path *onto, xl_content_choice *out) {
    memset(out, 0, sizeof *out);
    for (xl_stream *s = c->streams.send_head; s; s = s->send_next) {
        out->stream = s;
        if (!is_sending(s))
            continue;
        out->is_redundant = false;
        if (xl_send_has_lost(&s->send) && xl_send_next(&s->send, stream_credit(c, s), 1, &out->piece))
            return true;
        if (choose_redundant(s, onto, 1, out))
            return true;
        out->is_redundant = false;
        if (xl_send_next(&s->send, stream_credit(c, s), 1, &out->piece))
            return true;
    }
    return false;
}

/* A full send buffer, or no credit: what is in flight on a dark or slow path then delays all others. */
static bool is_held_up(const xl_connection *c, const xl_stream *s) {
    bool has_more = s->send.sent < s->send.written || xl_conn_is_full(c, s);
    return has_more && !xl_send_pending(&s->send, stream_credit(c, s));
}

/* Chooses bytes that are unsent or lost; before them, copies of the marked frame. end: end of the requested range. */
static bool choose_bytes(xl_connection *c, xl_stream *s, const xl_path *onto, xl_reinjection_scope scope, uint64_t end,
                         xl_content_choice *out) {
    if (scope == XL_REINJECT_MARKED_FRAME && choose_copy(c, s, onto, scope, out))
        return true;
    out->stream = s;
    return xl_send_next(&s->send, stream_credit(c, s), 1, &out->piece) && out->piece.offset < end;
}

typedef struct {
    bool may_copy, has_unsent;
} copying;

static xl_reinjection_scope scope_of(const xl_connection *c, const xl_stream *s, const copying *how) {
    return how->may_copy ? xl_conn_copy_scope(c, s, how->has_unsent, is_held_up(c, s)) : XL_REINJECT_NOTHING;
}

/* Chooses from a marked frame of a stream behind s, if its priority is higher than that of s. */
static bool choose_frame_behind(xl_connection *c, const xl_stream *s, const xl_path *onto, const copying *how,
                                xl_content_choice *out) {
    for (xl_stream *t = s->send_next; t; t = t->send_next) {
        if (!t->has_mark || t->mark.priority >= s->priority || !is_sending(t))
            continue;
        bool may_copy = c->reinjection->frame_first && scope_of(c, t, how) != XL_REINJECT_NOTHING;
        if (choose_bytes(c, t, onto, may_copy ? XL_REINJECT_MARKED_FRAME : XL_REINJECT_NOTHING,
                         t->mark.position + t->mark.size, out))
            return true;
    }
    return false;
}

bool xl_content_choose(xl_connection *c, const xl_path *onto, xl_content_choice *out) {
    if (c->scheduler->copies)
        return choose_for_every_path(c, onto, out);
    copying how = {.may_copy = c->multipath && c->reinjection != &xl_reinjection_none};
    how.has_unsent = how.may_copy && xl_content_has_unsent(c);
    bool passes_first = c->decision.for_later >> onto->index & 1;
    const xl_stream *before = NULL;
    memset(out, 0, sizeof *out);
    for (xl_stream *s = c->streams.send_head; s; before = s, s = s->send_next) {
        bool is_lower = !before || before->priority != s->priority;
        if (c->streams.marked > 0 && is_lower && choose_frame_behind(c, s, onto, &how, out))
            return true;
        if (passes_first && backlog(s) > 0) {
            passes_first = false;
            continue;
        }
        if (!is_sending(s))
            continue;
        xl_reinjection_scope scope = scope_of(c, s, &how);
        if (choose_bytes(c, s, onto, scope, UINT64_MAX, out))
            return true;
        if (scope == XL_REINJECT_STREAM && choose_copy(c, s, onto, scope, out))
            return true;
    }
    return false;
}

/* The choice was made for one byte: extends it to what the packet has room for. A copy is at most shortened. */
static void fit(const xl_builder *b, xl_content_choice *pick) {
    size_t left = xl_builder_left(b), most = left - xl_frame_stream_header_len(pick->stream->id, pick->piece.offset);
    if (pick->is_redundant) {
        choose_redundant(pick->stream, b->path, left - XL_STREAM_HEADER_BYTES, pick);
    } else if (!pick->copy.original) {
        xl_send_next(&pick->stream->send, stream_credit(b->c, pick->stream), most, &pick->piece);
    } else if (pick->piece.len > most) {
        pick->piece.len = most;
        pick->piece.fin = false;
    }
}

static void count_sent(xl_connection *c, xl_path *p, const xl_content_choice *pick, size_t len) {
    c->stats.stream_bytes_sent += len;
    p->stats.stream_bytes_sent += len;
    if (pick->copy.original || pick->is_redundant) {
        c->stats.reinjected_bytes += len;
        p->stats.reinjected_bytes += len;
    } else if (pick->piece.is_retransmission) {
        c->stats.retransmitted_bytes += len;
        p->stats.retransmitted_bytes += len;
    }
}

/* A path that carried these bytes before; -1: none. */
static int carrier(const xl_connection *c, const xl_content_choice *pick, const xl_path *onto) {
    uint64_t end = pick->piece.offset + pick->piece.len;
    XL_EACH_PATH(const xl_path, p, c)
        if (p != onto && pick->stream->carried_to[p->index] >= end)
            return p->index;
    return -1;
}

static void note_carried(xl_builder *b, const xl_content_choice *pick) {
    xl_stream *s = pick->stream;
    const xl_send_piece *piece = &pick->piece;
    if (pick->is_redundant)
        xl_qlog_reinjection(b->c->qlog, b->c->now, s->id, piece->offset, piece->len, carrier(b->c, pick, b->path),
                            b->path->index, 1, "redundant scheduler", NULL);
    if (piece->fin)
        s->fin_carried |= (uint8_t)(1u << b->path->index);
    if (!piece->is_retransmission)
        s->carried_to[b->path->index] = piece->offset + piece->len;
}

static bool put_piece(xl_builder *b, xl_content_choice *pick) {
    xl_connection *c = b->c;
    xl_stream *s = pick->stream;
    xl_send_piece *piece = &pick->piece;
    xl_sent_frame *r = xl_builder_note(b, XL_SF_STREAM, s->id, piece->offset);
    if (!r)
        return false;
    r->len = (uint32_t)piece->len;
    r->fin = piece->fin;
    xl_frame_put_stream_header(&b->w, s->id, piece->offset, piece->len, piece->fin);
    xl_send_copy(&s->send, piece->offset, b->w.p, piece->len);
    b->w.p += piece->len;
    count_sent(c, b->path, pick, piece->len);
    if (c->scheduler->copies)
        note_carried(b, pick);
    if (pick->copy.original) {
        xl_conn_copy_sent(c, s, &pick->copy, b->path, piece->offset, piece->len);
    } else if (!pick->is_redundant) {
        uint64_t before = s->send.sent;
        xl_send_mark_sent(&s->send, piece);
        c->streams.flow_out.used += s->send.sent - before;
        s->send_flow.used = s->send.sent;
        xl_conn_note_blocked(c, s);
        if (c->multipath && c->reinjection != &xl_reinjection_none && !c->scheduler->copies)
            xl_conn_unacked_push(s, r, c->reinjection->frame_first);
    }
    b->has_stream_data = true;
    return true;
}

void xl_content_put_streams(xl_builder *b, const xl_content_choice *first) {
    xl_content_choice pick;
    for (; xl_builder_left(b) >= MIN_STREAM_ROOM; first = NULL) {
        if (first)
            pick = *first;
        else if (!xl_content_choose(b->c, b->path, &pick))
            return;
        fit(b, &pick);
        if (!put_piece(b, &pick))
            return;
    }
}

void xl_content_fill_backlog(const xl_connection *c, xl_scheduler_view *view) {
    const xl_stream *first = NULL;
    bool withheld = false, sendable = false;
    view->unsent_bytes = 0;
    for (const xl_stream *s = c->streams.send_head; s; s = s->send_next) {
        if (!is_sending(s) && (!s->writable_wanted || xl_conn_is_reset(s)))
            continue;
        uint64_t unsent = backlog(s);
        view->unsent_bytes += unsent;
        first = first || unsent == 0 ? first : s;
        sendable |= xl_send_pending(&s->send, stream_credit(c, s));
        withheld |= s->send.sent < s->send.written || s->writable_wanted;
    }
    view->is_window_blocked = withheld && !sendable;
    view->send_window_bytes = UINT64_MAX;
    if (!first)
        return;
    view->first_bytes = backlog(first);
    uint64_t end = first->send.base + first->send.limit, credit = stream_credit(c, first);
    view->send_window_bytes = (credit < end ? credit : end) - first->send.base;
}

void xl_content_put_ping(xl_builder *b) {
    xl_write_varint(&b->w, XL_FRAME_PING);
    b->ack_eliciting = true;
}

bool xl_content_wants_ping(const xl_builder *b) {
    return !b->ack_eliciting && b->level == XL_LEVEL_APP && b->path->flight.quiet_packets >= QUIET_PACKETS_MAX;
}
