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
    if (xl_frame_info_of(frame->type)->numbers[0])
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

static void put_status(xl_json *j, uint64_t status) {
    static const char *const names[] = {"abandon", "standby", "available"};
    member(j, "status");
    xl_json_text(j, "\"");
    xl_json_text(j, status <= XL_STATUS_AVAILABLE ? names[status] : "unknown");
    xl_json_text(j, "\"");
}

/* What the draft has before the numbers of a frame. */
static void put_kind(xl_json *j, uint64_t type) {
    if (type == XL_FRAME_MAX_STREAMS_BIDI || type == XL_FRAME_STREAMS_BLOCKED_BIDI)
        xl_json_text(j, ",\"stream_type\":\"bidirectional\"");
    if (type == XL_FRAME_MAX_STREAMS_UNI || type == XL_FRAME_STREAMS_BLOCKED_UNI)
        xl_json_text(j, ",\"stream_type\":\"unidirectional\"");
    if (type == XL_FRAME_CONNECTION_CLOSE)
        xl_json_text(j, ",\"error_space\":\"transport\"");
    if (type == XL_FRAME_APPLICATION_CLOSE)
        xl_json_text(j, ",\"error_space\":\"application\"");
}

static void put_numbers(xl_json *j, const xl_frame *frame) {
    const xl_frame_info *info = xl_frame_info_of(frame->type);
    const bool is_of_stream = frame->type == XL_FRAME_RESET_STREAM || frame->type == XL_FRAME_STOP_SENDING;
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++) {
        if (frame->type == XL_FRAME_PATH_STATUS && &frame->number[i] == &frame->path_status.status) {
            put_status(j, frame->number[i]);
            continue;
        }
        if (is_of_stream && &frame->number[i] == &frame->reset_stream.error_code)
            xl_json_text(j, ",\"error\":\"unknown\""); /* only the application has names for its errors */
        if (info->numbers[i])
            member_u64(j, info->numbers[i], frame->number[i]);
    }
}

static void put_rest(xl_json *j, const xl_frame *frame) {
    switch (frame->type) {
    case XL_FRAME_CRYPTO:
        member_raw(j, frame->crypto.len);
        break;
    case XL_FRAME_NEW_TOKEN:
        xl_json_text(j, ",\"token\":{\"raw\":{\"length\":");
        xl_json_u64(j, frame->new_token.len);
        xl_json_text(j, "}}");
        break;
    case XL_FRAME_DATAGRAM:
        member_raw(j, frame->datagram.len);
        break;
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        member_u64(j, "connection_id_length", frame->new_cid.cid.len);
        member_hex(j, "connection_id", frame->new_cid.cid.id, frame->new_cid.cid.len);
        break;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        member_hex(j, "data", frame->path.data, 8);
        break;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        if (!frame->close.reason)
            break;
        member(j, "reason");
        xl_json_string(j, (const char *)frame->close.reason, frame->close.reason_len);
        break;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        member_u64(j, "length", frame->qoe.len);
        if (frame->qoe.has_qoe)
            member_qoe(j, &frame->qoe.qoe);
        break;
    default:
        break;
    }
}

static void put_members(xl_json *j, const xl_frame *frame, uint64_t exponent) {
    switch (frame->type) {
    case XL_FRAME_STREAM:
        put_stream(j, frame);
        break;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
        put_ack(j, frame, exponent);
        break;
    default:
        put_kind(j, frame->type);
        put_numbers(j, frame);
        put_rest(j, frame);
        break;
    }
}

void xl_qlog_put_frame(xl_json *j, const xl_frame *frame, uint64_t ack_delay_exponent) {
    xl_json_text(j, "{\"frame_type\":\"");
    xl_json_text(j, xl_frame_info_of(frame->type)->name);
    xl_json_text(j, "\"");
    put_members(j, frame, ack_delay_exponent);
    xl_json_text(j, "}");
}
