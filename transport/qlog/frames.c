#include "qlog/frames.h"

/* Writes ,"name":value. frame_type always comes before. */
static inline __attribute__((always_inline)) void member(xl_json *j, const char *name) {
    xl_json_member(j, name, true);
}

static inline __attribute__((always_inline)) void member_u64(xl_json *j, const char *name, uint64_t v) {
    member(j, name);
    xl_json_u64(j, v);
}

static void member_hex(xl_json *j, const char *name, const uint8_t *data, size_t n) {
    if (!data)
        return;
    member(j, name);
    xl_json_text(j, "\"");
    xl_json_hex(j, data, n);
    xl_json_text(j, "\"");
}

/* In frames, the draft's raw.length is the value of their length field. */
static void member_raw(xl_json *j, size_t len) {
    member(j, "raw");
    xl_json_text(j, "{\"length\":");
    xl_json_u64(j, len);
    xl_json_text(j, "}");
}

/* Only the application has names for its errors. */
static void member_error(xl_json *j, uint64_t code) {
    member(j, "error");
    xl_json_text(j, "\"unknown\"");
    member_u64(j, "error_code", code);
}

void xl_qlog_put_qoe(xl_json *j, const xl_qoe *qoe) {
    xl_json_text(j, "\"cached_bytes\":");
    xl_json_u64(j, qoe->cached_bytes);
    member_u64(j, "cached_frames", qoe->cached_frames);
    member_u64(j, "bps", qoe->bps);
    member_u64(j, "fps", qoe->fps);
}

static void member_qoe(xl_json *j, const xl_qoe *qoe) {
    member(j, "qoe");
    xl_json_text(j, "{");
    xl_qlog_put_qoe(j, qoe);
    xl_json_text(j, "}");
}

#define MEMBER_BYTES 44 /* upper bound for a member with a number, and for a range */

/* Requires xl_json_has_room(). */
static __attribute__((always_inline)) inline char *put_u64(char *at, const char *name, uint64_t v) {
    return xl_json_put_u64(xl_json_put(at, name), v);
}

static char *put_ranges(char *at, const xl_ack_frame *ack) {
    for (size_t i = 0; i < ack->range_count && i < XL_ACK_RANGES_MAX; i++) {
        at = put_u64(at, i > 0 ? ",[" : "[", ack->ranges[i].smallest);
        at = put_u64(at, ",", ack->ranges[i].largest);
        *at++ = ']';
    }
    return at;
}

static void put_ack(xl_json *j, const xl_frame *frame, uint64_t exponent) {
    const xl_ack_frame *ack = &frame->ack;
    const uint64_t delay_us = ack->delay > UINT64_MAX >> exponent ? UINT64_MAX : ack->delay << exponent;
    if (!xl_json_has_room(j, (6 + ack->range_count) * MEMBER_BYTES))
        return;
    char *at = j->p + j->used;
    if (frame->type != XL_FRAME_ACK && frame->type != XL_FRAME_ACK_ECN)
        at = put_u64(at, ",\"path_id\":", ack->path_id);
    at = xl_json_put_ms(xl_json_put(at, ",\"ack_delay\":"), delay_us);
    at = put_ranges(xl_json_put(at, ",\"acked_ranges\":["), ack);
    at = xl_json_put(at, "]");
    if (ack->has_ecn) {
        at = put_u64(at, ",\"ect0\":", ack->ect0);
        at = put_u64(at, ",\"ect1\":", ack->ect1);
        at = put_u64(at, ",\"ce\":", ack->ce);
    }
    j->used = (size_t)(at - j->p);
    if (ack->has_qoe)
        member_qoe(j, &ack->qoe);
}

static void put_stream(xl_json *j, const xl_frame *frame) {
    if (!xl_json_has_room(j, 4 * MEMBER_BYTES))
        return;
    char *at = put_u64(j->p + j->used, ",\"stream_id\":", frame->stream.stream_id);
    at = put_u64(at, ",\"offset\":", frame->stream.offset);
    at = put_u64(at, ",\"raw\":{\"length\":", frame->stream.len);
    at = frame->stream.fin ? xl_json_put(at, "},\"fin\":true") : xl_json_put(at, "},\"fin\":false");
    j->used = (size_t)(at - j->p);
}

static void put_close(xl_json *j, const xl_frame *frame) {
    bool application = frame->type == XL_FRAME_APPLICATION_CLOSE;
    member(j, "error_space");
    xl_json_text(j, application ? "\"application\"" : "\"transport\"");
    member_u64(j, "error_code", frame->close.error_code);
    if (!application)
        member_u64(j, "trigger_frame_type", frame->close.frame_type);
    if (frame->close.reason) {
        member(j, "reason");
        xl_json_string(j, (const char *)frame->close.reason, frame->close.reason_len);
    }
}

static void put_max(xl_json *j, const xl_frame *frame) {
    uint64_t type = frame->type;
    bool blocked = type >= XL_FRAME_DATA_BLOCKED && type <= XL_FRAME_STREAMS_BLOCKED_UNI;
    if (type == XL_FRAME_MAX_STREAM_DATA || type == XL_FRAME_STREAM_DATA_BLOCKED)
        member_u64(j, "stream_id", frame->max.stream_id);
    if (type == XL_FRAME_MAX_STREAMS_BIDI || type == XL_FRAME_STREAMS_BLOCKED_BIDI)
        xl_json_text(j, ",\"stream_type\":\"bidirectional\"");
    if (type == XL_FRAME_MAX_STREAMS_UNI || type == XL_FRAME_STREAMS_BLOCKED_UNI)
        xl_json_text(j, ",\"stream_type\":\"unidirectional\"");
    member_u64(j, blocked ? "limit" : "maximum", frame->max.maximum);
}

static void put_new_cid(xl_json *j, const xl_frame *frame) {
    if (frame->type == XL_FRAME_PATH_NEW_CONNECTION_ID)
        member_u64(j, "path_id", frame->new_cid.path_id);
    member_u64(j, "sequence_number", frame->new_cid.sequence);
    member_u64(j, "retire_prior_to", frame->new_cid.retire_prior_to);
    member_u64(j, "connection_id_length", frame->new_cid.cid.len);
    member_hex(j, "connection_id", frame->new_cid.cid.id, frame->new_cid.cid.len);
}

static void put_path_status(xl_json *j, const xl_frame *frame) {
    static const char *const names[] = {"abandon", "standby", "available"};
    uint64_t status = frame->path_status.status;
    member_u64(j, "path_id", frame->path_status.path_id);
    member_u64(j, "sequence_number", frame->path_status.sequence);
    member(j, "status");
    xl_json_text(j, "\"");
    xl_json_text(j, status <= XL_STATUS_AVAILABLE ? names[status] : "unknown");
    xl_json_text(j, "\"");
    member_u64(j, "priority", frame->path_status.priority);
}

static void put_members(xl_json *j, const xl_frame *frame, uint64_t exponent) {
    switch (frame->type) {
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
        put_ack(j, frame, exponent);
        break;
    case XL_FRAME_RESET_STREAM:
        member_u64(j, "stream_id", frame->reset_stream.stream_id);
        member_error(j, frame->reset_stream.error_code);
        member_u64(j, "final_size", frame->reset_stream.final_size);
        break;
    case XL_FRAME_STOP_SENDING:
        member_u64(j, "stream_id", frame->stop_sending.stream_id);
        member_error(j, frame->stop_sending.error_code);
        break;
    case XL_FRAME_CRYPTO:
        member_u64(j, "offset", frame->crypto.offset);
        member_raw(j, frame->crypto.len);
        break;
    case XL_FRAME_NEW_TOKEN:
        xl_json_text(j, ",\"token\":{\"raw\":{\"length\":");
        xl_json_u64(j, frame->new_token.len);
        xl_json_text(j, "}}");
        break;
    case XL_FRAME_STREAM:
        put_stream(j, frame);
        break;
    case XL_FRAME_DATAGRAM:
        member_raw(j, frame->datagram.len);
        break;
    case XL_FRAME_ACK_FREQUENCY:
        member_u64(j, "sequence_number", frame->ack_frequency.sequence);
        member_u64(j, "ack_eliciting_threshold", frame->ack_frequency.threshold);
        member_u64(j, "requested_max_ack_delay", frame->ack_frequency.max_delay_us);
        member_u64(j, "reordering_threshold", frame->ack_frequency.reordering);
        break;
    case XL_FRAME_MAX_DATA:
    case XL_FRAME_MAX_STREAM_DATA:
    case XL_FRAME_MAX_STREAMS_BIDI:
    case XL_FRAME_MAX_STREAMS_UNI:
    case XL_FRAME_DATA_BLOCKED:
    case XL_FRAME_STREAM_DATA_BLOCKED:
    case XL_FRAME_STREAMS_BLOCKED_BIDI:
    case XL_FRAME_STREAMS_BLOCKED_UNI:
        put_max(j, frame);
        break;
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        put_new_cid(j, frame);
        break;
    case XL_FRAME_PATH_RETIRE_CONNECTION_ID:
        member_u64(j, "path_id", frame->retire_cid.path_id);
        member_u64(j, "sequence_number", frame->retire_cid.sequence);
        break;
    case XL_FRAME_PATH_ABANDON:
        member_u64(j, "path_id", frame->path_abandon.path_id);
        member_u64(j, "error_code", frame->path_abandon.error_code);
        break;
    case XL_FRAME_PATH_STATUS_BACKUP:
    case XL_FRAME_PATH_STATUS_AVAILABLE:
        member_u64(j, "path_id", frame->path_status.path_id);
        member_u64(j, "sequence_number", frame->path_status.sequence);
        break;
    case XL_FRAME_PATH_CIDS_BLOCKED:
        member_u64(j, "path_id", frame->path_cids_blocked.path_id);
        member_u64(j, "next_sequence_number", frame->path_cids_blocked.next_sequence);
        break;
    case XL_FRAME_MAX_PATH_ID:
    case XL_FRAME_PATHS_BLOCKED:
        member_u64(j, "maximum_path_id", frame->max.maximum);
        break;
    case XL_FRAME_RETIRE_CONNECTION_ID:
        member_u64(j, "sequence_number", frame->retire_cid.sequence);
        break;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        member_hex(j, "data", frame->path.data, 8);
        break;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        put_close(j, frame);
        break;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        member_u64(j, "path_id", frame->qoe.path_id);
        member_u64(j, "length", frame->qoe.len);
        if (frame->qoe.has_qoe)
            member_qoe(j, &frame->qoe.qoe);
        break;
    case XL_FRAME_PATH_STATUS:
        put_path_status(j, frame);
        break;
    default:
        break;
    }
}

void xl_qlog_put_frame(xl_json *j, const xl_frame *frame, uint64_t ack_delay_exponent) {
    xl_json_text(j, "{\"frame_type\":\"");
    xl_json_text(j, xl_frame_name(frame->type));
    xl_json_text(j, "\"");
    put_members(j, frame, ack_delay_exponent);
    xl_json_text(j, "}");
}
