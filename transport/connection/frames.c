#include "connection/frames.h"

#include <stdio.h>
#include <string.h>

#include "connection/acks.h"
#include "connection/cid_frames.h"
#include "connection/connection.h"
#include "connection/content.h"
#include "connection/datagrams.h"
#include "connection/handshake.h"
#include "connection/path_status.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/qoe.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "minmax.h"

static uint64_t take_crypto(xl_connection *c, const xl_frame *f, const xl_packet_context *ctx) {
    xl_level_state *l = &c->level[ctx->level];
    uint64_t grown;
    uint64_t error = xl_recv_insert(&l->recv, f->crypto.offset, f->crypto.data, f->crypto.len, false,
                                    l->recv.read + XL_CRYPTO_BUFFER, &grown);
    if (error)
        return error == XL_QERR_FLOW_CONTROL ? XL_QERR_CRYPTO_BUFFER_EXCEEDED : error;
    xl_conn_crypto_received(c, ctx->level);
    return 0;
}

static uint64_t take_stream(xl_connection *c, const xl_frame *f) {
    uint64_t error = 0, grown = 0;
    xl_stream *s = xl_conn_stream_for_frame(c, f->stream.stream_id, true, &error);
    if (!s)
        return error;
    if (s->peer_reset) /* the data is not needed, but the final size must be the same (RFC 9000 section 4.5) */
        return xl_recv_insert(&s->recv, f->stream.offset + f->stream.len, NULL, 0, f->stream.fin, s->recv_flow.limit,
                              &grown);
    const size_t cap = s->recv.cap;
    error = xl_recv_insert(&s->recv, f->stream.offset, f->stream.data, f->stream.len, f->stream.fin, s->recv_flow.limit,
                           &grown);
    if (error)
        return error;
    if (s->recv.cap > cap && s->recv.cap > XL_RECV_SPARE_BYTES)
        xl_conn_shrink_beside(c, s);
    s->recv_flow.received += grown;
    c->streams.flow_in.received += grown;
    c->stats.stream_bytes_received += f->stream.len;
    if (c->streams.flow_in.received > c->streams.flow_in.limit)
        return XL_QERR_FLOW_CONTROL;
    if (s->stop_pending || s->stop_sent)
        xl_conn_discard_unread(c, s);
    else
        xl_conn_notify_readable(c, s);
    return 0;
}

static uint64_t take_reset_stream(xl_connection *c, const xl_frame *f) {
    uint64_t error = 0, grown = 0;
    xl_stream *s = xl_conn_stream_for_frame(c, f->reset_stream.stream_id, true, &error);
    if (!s)
        return error;
    error = xl_recv_insert(&s->recv, f->reset_stream.final_size, NULL, 0, true, s->recv_flow.limit, &grown);
    if (error)
        return error;
    c->streams.flow_in.received += grown;
    if (c->streams.flow_in.received > c->streams.flow_in.limit)
        return XL_QERR_FLOW_CONTROL;
    if (s->peer_reset || s->recv_done)
        return 0;
    s->peer_reset = s->recv_done = true;
    /* Bytes that the application will never read count as consumed (RFC 9000 section 4.5). */
    xl_conn_grant_credit(c, f->reset_stream.final_size - s->recv.read);
    xl_recv_discard(&s->recv);
    xl_conn_emit(
        c, (xl_event){.type = XL_EVENT_STREAM_RESET, .stream_id = s->id, .error_code = f->reset_stream.error_code});
    xl_conn_stream_settle(c, s);
    return 0;
}

static uint64_t take_stop_sending(xl_connection *c, const xl_frame *f) {
    uint64_t error = 0;
    xl_stream *s = xl_conn_stream_for_frame(c, f->stop_sending.stream_id, false, &error);
    if (!s)
        return error;
    if (xl_conn_is_reset(s) || xl_send_is_done(&s->send))
        return 0;
    xl_conn_reset_sending(c, s, f->stop_sending.error_code);
    xl_conn_emit(
        c, (xl_event){.type = XL_EVENT_STREAM_STOPPED, .stream_id = s->id, .error_code = f->stop_sending.error_code});
    return 0;
}

static uint64_t take_max_stream_data(xl_connection *c, const xl_frame *f) {
    uint64_t error = 0;
    xl_stream *s = xl_conn_stream_for_frame(c, f->max.stream_id, false, &error);
    if (s)
        xl_flow_out_raise(&s->send_flow, f->max.maximum);
    return error;
}

/* RFC 9000 section 19.13: it opens a stream as data would, and is an error for a stream on which the peer cannot
 * send. */
static uint64_t take_stream_data_blocked(xl_connection *c, const xl_frame *f) {
    uint64_t error = 0;
    xl_stream *s = xl_conn_stream_for_frame(c, f->max.stream_id, true, &error);
    if (s && !s->recv_done && xl_content_lacks_limit(c, &s->recv_flow, f->max.maximum))
        s->max_data_pending = c->streams.control_dirty = true;
    return error;
}

static void take_data_blocked(xl_connection *c, const xl_frame *f) {
    c->streams.max_data_pending |= xl_content_lacks_limit(c, &c->streams.flow_in, f->max.maximum);
}

static uint64_t take_max_streams(xl_connection *c, const xl_frame *f) {
    if (f->max.maximum > UINT64_C(1) << 60)
        return XL_QERR_FRAME_ENCODING;
    xl_flow_out_raise(&c->streams.opened[f->type == XL_FRAME_MAX_STREAMS_UNI], f->max.maximum);
    return 0;
}

static uint64_t take_close(xl_connection *c, const xl_frame *f) {
    char words[sizeof c->closing.words];
    size_t n = f->close.reason_len < sizeof words - 1 ? f->close.reason_len : sizeof words - 1;
    for (size_t i = 0; i < n; i++) { /* the peer's text ends up in terminals and logs */
        uint8_t ch = f->close.reason[i];
        words[i] = ch >= 0x20 && ch < 0x7f ? (char)ch : '?';
    }
    words[n] = 0;
    c->closing.is_application = f->type == XL_FRAME_APPLICATION_CLOSE;
    c->closing.code = f->close.error_code;
    if (n == 0 && !c->closing.is_application && f->close.error_code >> 8 == XL_QERR_CRYPTO_BASE >> 8)
        snprintf(words, sizeof words, "TLS alert: %s", xl_tls_alert_name((uint8_t)f->close.error_code));
    xl_conn_drain(c, XL_CLOSE_PEER, words);
    return 0;
}

/* RFC 9000 section 8.2.2: the answer goes to the address that the challenge came from. */
static void take_path_challenge(xl_connection *c, const xl_frame *f, const xl_packet_context *ctx) {
    const xl_datagram *d = ctx->datagram;
    if (xl_addr_equal(&d->remote, &ctx->path->remote) && xl_addr_equal(&d->local, &ctx->path->local)) {
        xl_path_queue_response(ctx->path, f->path.data);
        return;
    }
    c->elsewhere = (xl_elsewhere){.path = ctx->path->index, .local = d->local, .remote = d->remote};
    c->elsewhere.room = xl_min(3 * d->len, XL_MIN_DATAGRAM);
    memcpy(c->elsewhere.data, f->path.data, sizeof c->elsewhere.data);
}

static void take_path_response(xl_connection *c, const xl_frame *f) {
    XL_EACH_PATH(xl_path, p, c) {
        if (!xl_path_take_response(p, f->path.data, c->now))
            continue;
        xl_conn_path_validated(c, p);
        if (p->rtt_sampled_at == c->now)
            xl_conn_log_metrics(c, p);
        xl_conn_offer_token(c, p);
        if (p->validation.was_small) /* the address is proven, so that a full-size challenge fits now */
            xl_conn_start_challenge(c, p);
    }
}

/* Lower bound of when the peer made this acknowledgement: the packet took at least half of the smallest RTT. */
static uint64_t acknowledged_after(const xl_connection *c, xl_space *space, const xl_ack_frame *ack) {
    const xl_sent_packet *largest = xl_ledger_find(&space->ledger, ack->ranges[0].largest);
    if (!largest)
        return 0;
    return largest->time_us + c->path[largest->path]->rtt.min / 2;
}

/* A frame of few bytes causes a search of the whole ring of sent packets. An honest peer sends at most one in a packet
 * for each packet number space; those beyond twice as many are ignored. */
#define ACKS_IN_PACKET_MAX (2 * XL_MAX_PATHS)

#define XL_ACK_DELAY_LIMIT_US (UINT64_C(1000) << 14) /* RFC 9000 section 18.2 */

static bool speaks_xlink(const xl_connection *c) {
    return c->multipath && !c->path_ids;
}

/* PATH_ACK of a path that never existed is an error. PATH_ACK of an abandoned path is ignored. */
static uint64_t check_acked_id(const xl_connection *c, uint64_t path_id) {
    xl_path_id *id;
    uint64_t error = xl_path_ids_named(c->path_ids, path_id, &id);
    return error == 0 && id && !id->is_used && !id->is_abandoned ? XL_QERR_PROTOCOL_VIOLATION : error;
}

static uint64_t take_any_ack(xl_connection *c, const xl_frame *f, const xl_packet_context *ctx) {
    if (++c->acks_in_packet > ACKS_IN_PACKET_MAX)
        return 0;
    bool is_ietf = f->type == XL_FRAME_PATH_ACK || f->type == XL_FRAME_PATH_ACK_ECN;
    bool is_mp = is_ietf || f->type == XL_FRAME_ACK_MP || f->type == XL_FRAME_ACK_MP_ECN;
    xl_space *space = ctx->space;
    if (is_mp) {
        if (!is_ietf && !speaks_xlink(c))
            return XL_QERR_MP_PROTOCOL_VIOLATION;
        uint64_t error = is_ietf ? check_acked_id(c, f->ack.path_id) : 0;
        if (error)
            return error;
        xl_path *acked = xl_conn_path_by_remote_id(c, f->ack.path_id);
        if (!acked ||
            (is_ietf &&
             acked->state == XL_PATH_CLOSED)) /* a former path, or an ID that never existed, which is harmless */
            return 0;
        space = acked->space;
        uint64_t made_after = acknowledged_after(c, space, &f->ack);
        if (made_after > ctx->path->made.made_after) {
            ctx->path->made.made_after = made_after;
            ctx->path->made.made_pn = ctx->pn;
        }
        if (f->ack.has_qoe)
            xl_conn_take_qoe(c, &f->ack.qoe, made_after);
    } else if (ctx->level == XL_LEVEL_APP) {
        space = &c->space[XL_LEVEL_APP];
    }
    uint64_t error = xl_conn_take_ack(c, space, ctx->path, &f->ack);
    if (error == 0 && c->path_ids && c->path_ids->cid_was_acked) {
        c->path_ids->cid_was_acked = false;
        xl_conn_open_paths(c);
    }
    return error;
}

/* draft-ietf-quic-ack-frequency section 4. */
static uint64_t take_ack_frequency(xl_connection *c, const xl_frame *f) {
    if (!c->local_params.has_min_ack_delay)
        return XL_QERR_FRAME_ENCODING; /* an unknown type */
    if (f->ack_frequency.max_delay_us < c->local_params.min_ack_delay_us ||
        f->ack_frequency.max_delay_us >= XL_ACK_DELAY_LIMIT_US)
        return XL_QERR_PROTOCOL_VIOLATION;
    if (f->ack_frequency.sequence < c->ack_policy_after)
        return 0;
    c->ack_policy_after = f->ack_frequency.sequence + 1;
    c->ack_policy = (xl_ack_policy){.threshold = f->ack_frequency.threshold,
                                    .reordering = f->ack_frequency.reordering,
                                    .max_delay_us = f->ack_frequency.max_delay_us};
    return 0;
}

static uint64_t take_immediate_ack(const xl_connection *c, const xl_packet_context *ctx) {
    if (!c->local_params.has_min_ack_delay)
        return XL_QERR_FRAME_ENCODING;
    ctx->space->ack_now = true;
    return 0;
}

uint64_t xl_conn_take_frame(xl_connection *c, const xl_frame *f, const xl_packet_context *ctx) {
    if (!c->path_ids && xl_frame_is_ietf(f->type))
        return XL_QERR_FRAME_ENCODING; /* an unknown type (RFC 9000 section 12.4) */
    switch (f->type) {
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
        return take_any_ack(c, f, ctx);
    case XL_FRAME_CRYPTO:
        return take_crypto(c, f, ctx);
    case XL_FRAME_STREAM:
        return take_stream(c, f);
    case XL_FRAME_RESET_STREAM:
        return take_reset_stream(c, f);
    case XL_FRAME_STOP_SENDING:
        return take_stop_sending(c, f);
    case XL_FRAME_MAX_DATA:
        xl_flow_out_raise(&c->streams.flow_out, f->max.maximum);
        return 0;
    case XL_FRAME_MAX_STREAM_DATA:
        return take_max_stream_data(c, f);
    case XL_FRAME_MAX_STREAMS_BIDI:
    case XL_FRAME_MAX_STREAMS_UNI:
        return take_max_streams(c, f);
    case XL_FRAME_DATA_BLOCKED:
        take_data_blocked(c, f);
        return 0;
    case XL_FRAME_STREAM_DATA_BLOCKED:
        return take_stream_data_blocked(c, f);
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        return xl_conn_take_new_cid(c, f);
    case XL_FRAME_RETIRE_CONNECTION_ID:
    case XL_FRAME_PATH_RETIRE_CONNECTION_ID:
        return xl_conn_take_retire_cid(c, f);
    case XL_FRAME_PATH_CHALLENGE:
        take_path_challenge(c, f, ctx);
        return 0;
    case XL_FRAME_PATH_RESPONSE:
        take_path_response(c, f);
        return 0;
    case XL_FRAME_PATH_STATUS:
        return speaks_xlink(c) ? xl_conn_take_path_status(c, f) : XL_QERR_MP_PROTOCOL_VIOLATION;
    case XL_FRAME_PATH_STATUS_BACKUP:
    case XL_FRAME_PATH_STATUS_AVAILABLE:
        return xl_conn_take_path_status(c, f);
    case XL_FRAME_PATH_ABANDON:
    case XL_FRAME_MAX_PATH_ID:
    case XL_FRAME_PATHS_BLOCKED:
    case XL_FRAME_PATH_CIDS_BLOCKED:
        return xl_conn_take_path_id_frame(c, f);
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        if (!c->multipath || (c->path_ids && !c->qoe.has_field))
            return XL_QERR_MP_PROTOCOL_VIOLATION;
        if (f->qoe.has_qoe)
            xl_conn_take_qoe_signal(c, &f->qoe.qoe, ctx);
        return 0;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        return take_close(c, f);
    case XL_FRAME_HANDSHAKE_DONE:
        if (c->is_server)
            return XL_QERR_PROTOCOL_VIOLATION;
        xl_conn_confirm_handshake(c);
        return 0;
    case XL_FRAME_DATAGRAM:
        return xl_conn_take_datagram(c, f);
    case XL_FRAME_ACK_FREQUENCY:
        return take_ack_frequency(c, f);
    case XL_FRAME_IMMEDIATE_ACK:
        return take_immediate_ack(c, ctx);
    case XL_FRAME_NEW_TOKEN:
        if (c->is_server)
            return XL_QERR_PROTOCOL_VIOLATION;
        xl_tls_remember(c->handshake.tls, XL_TLS_TOKEN, f->new_token.token, f->new_token.len);
        return 0;
    default: /* PADDING, PING, the other BLOCKED frames: nothing to do */
        return 0;
    }
}
