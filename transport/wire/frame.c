#include "wire/frame.h"

#include <string.h>

#define MAX_STREAMS (UINT64_C(1) << 60)

/* The packet types in which a frame may occur, one bit each (RFC 9000 table 3): I(nitial), H(andshake), 0(-RTT),
 * 1(-RTT). */
enum {
    IN_1 = 1 << XL_PACKET_1RTT,
    IN_01 = 1 << XL_PACKET_0RTT | IN_1,
    IN_IH1 = 1 << XL_PACKET_INITIAL | 1 << XL_PACKET_HANDSHAKE | IN_1,
    IN_IH01 = IN_IH1 | IN_01,
};

#define CID_BYTES (1 + XL_MAX_CID_BYTES + 16) /* length, a CID, its token */
#define QOE_BYTES (1 + 4 * 8)                 /* length, four numbers */

#define V1(type) [XL_FRAME_##type]
static const xl_frame_info quic_v1[] = {
    V1(PADDING) = {"padding", IN_IH01, .is_silent = true, .is_probing = true},
    V1(PING) = {"ping", IN_IH01},
    V1(ACK) = {"ack", IN_IH1, .is_silent = true},
    V1(ACK_ECN) = {"ack", IN_IH1, .is_silent = true},
    V1(RESET_STREAM) = {"reset_stream", IN_01, {"stream_id", "error_code", "final_size"}},
    V1(STOP_SENDING) = {"stop_sending", IN_01, {"stream_id", "error_code"}},
    V1(CRYPTO) = {"crypto", IN_IH1, {"offset"}},
    V1(NEW_TOKEN) = {"new_token", IN_1},
    [XL_FRAME_STREAM... XL_FRAME_STREAM + 7] = {"stream", IN_01},
    V1(MAX_DATA) = {"max_data", IN_01, {NULL, "maximum"}},
    V1(MAX_STREAM_DATA) = {"max_stream_data", IN_01, {"stream_id", "maximum"}},
    V1(MAX_STREAMS_BIDI) = {"max_streams", IN_01, {NULL, "maximum"}},
    V1(MAX_STREAMS_UNI) = {"max_streams", IN_01, {NULL, "maximum"}},
    V1(DATA_BLOCKED) = {"data_blocked", IN_01, {NULL, "limit"}},
    V1(STREAM_DATA_BLOCKED) = {"stream_data_blocked", IN_01, {"stream_id", "limit"}},
    V1(STREAMS_BLOCKED_BIDI) = {"streams_blocked", IN_01, {NULL, "limit"}},
    V1(STREAMS_BLOCKED_UNI) = {"streams_blocked", IN_01, {NULL, "limit"}},
    V1(NEW_CONNECTION_ID) = {"new_connection_id",
                             IN_01,
                             {NULL, "sequence_number", "retire_prior_to"},
                             .is_probing = true,
                             .rest_bytes = CID_BYTES},
    V1(RETIRE_CONNECTION_ID) = {"retire_connection_id", IN_01, {NULL, "sequence_number"}},
    V1(PATH_CHALLENGE) = {"path_challenge", IN_01, .is_probing = true, .rest_bytes = 8},
    V1(PATH_RESPONSE) = {"path_response", IN_1, .is_probing = true, .rest_bytes = 8},
    V1(CONNECTION_CLOSE) = {"connection_close", IN_IH01, {"error_code", "trigger_frame_type"}, .is_silent = true},
    V1(APPLICATION_CLOSE) = {"connection_close", IN_01, {"error_code"}, .is_silent = true},
    V1(HANDSHAKE_DONE) = {"handshake_done", IN_1},
    V1(IMMEDIATE_ACK) = {"immediate_ack", IN_1},
};

#define XLINK(type) [XL_FRAME_##type - XL_FRAME_ACK_MP]
static const xl_frame_info xlink[] = {
    XLINK(ACK_MP) = {"ack_mp", IN_1, {"path_id"}, .is_silent = true},
    XLINK(ACK_MP_ECN) = {"ack_mp", IN_1, {"path_id"}, .is_silent = true},
    XLINK(QOE_CONTROL_SIGNALS) = {"qoe_control_signals", IN_1, {"path_id"}, .rest_bytes = QOE_BYTES},
    XLINK(PATH_STATUS) = {"path_status", IN_1, {"path_id", "sequence_number", "status", "priority"}},
};

static const xl_frame_info ietf_acks[] = {[0 ... 1] = {"path_ack", IN_1, {"path_id"}, .is_silent = true}};

#define IETF(type) [XL_FRAME_##type - XL_FRAME_PATH_ABANDON]
static const xl_frame_info ietf[] = {
    IETF(PATH_ABANDON) = {"path_abandon", IN_1, {"path_id", "error_code"}},
    IETF(PATH_STATUS_BACKUP) = {"path_status_backup", IN_1, {"path_id", "sequence_number"}},
    IETF(PATH_STATUS_AVAILABLE) = {"path_status_available", IN_1, {"path_id", "sequence_number"}},
    IETF(PATH_NEW_CONNECTION_ID) = {"path_new_connection_id",
                                    IN_1,
                                    {"path_id", "sequence_number", "retire_prior_to"},
                                    .is_probing = true,
                                    .rest_bytes = CID_BYTES},
    IETF(PATH_RETIRE_CONNECTION_ID) = {"path_retire_connection_id", IN_1, {"path_id", "sequence_number"}},
    IETF(MAX_PATH_ID) = {"max_path_id", IN_1, {NULL, "maximum_path_id"}},
    IETF(PATHS_BLOCKED) = {"paths_blocked", IN_1, {NULL, "maximum_path_id"}},
    IETF(PATH_CIDS_BLOCKED) = {"path_cids_blocked", IN_1, {"path_id", "next_sequence_number"}},
};

static const xl_frame_info datagram[] = {[0 ... 1] = {"datagram", IN_01}};
static const xl_frame_info ack_frequency[] = {
    [0] = {"ack_frequency",
           IN_1,
           {"sequence_number", "ack_eliciting_threshold", "requested_max_ack_delay", "reordering_threshold"}}};

#define RUN(first, infos)                                                                                              \
    { first, sizeof infos / sizeof infos[0], infos }

const xl_frame_info *xl_frame_info_of(uint64_t type) {
    static const xl_frame_info unknown = {.name = "unknown"};
    static const struct {
        uint64_t first, count;
        const xl_frame_info *infos;
    } runs[] = {
        RUN(XL_FRAME_PADDING, quic_v1),   RUN(XL_FRAME_ACK_MP, xlink),      RUN(XL_FRAME_PATH_ACK, ietf_acks),
        RUN(XL_FRAME_PATH_ABANDON, ietf), RUN(XL_FRAME_DATAGRAM, datagram), RUN(XL_FRAME_ACK_FREQUENCY, ack_frequency),
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        if (type - runs[i].first < runs[i].count)
            return &runs[i].infos[type - runs[i].first];
    return &unknown;
}

/* The QoE control signal: exactly four varints. */
static bool parse_qoe(const uint8_t *signal, size_t len, xl_qoe *out) {
    xl_reader r = xl_reader_of(signal, len);
    out->cached_bytes = xl_read_varint(&r);
    out->cached_frames = xl_read_varint(&r);
    out->bps = xl_read_varint(&r);
    out->fps = xl_read_varint(&r);
    return !r.failed && xl_reader_left(&r) == 0;
}

/* RFC 9000 section 19.3.1. Gaps and lengths count downwards from the largest: each step is checked before it is taken.
 */
static bool parse_ack_ranges(xl_reader *r, xl_ack_frame *ack) {
    uint64_t largest = xl_read_varint(r);
    ack->delay = xl_read_varint(r);
    uint64_t further = xl_read_varint(r);
    uint64_t length = xl_read_varint(r);
    if (r->failed || length > largest || further > xl_reader_left(r) / 2)
        return false;
    uint64_t smallest = largest - length;
    ack->ranges[0] = (xl_ack_range){smallest, largest};
    ack->range_count = 1;
    for (; further > 0; further--) {
        uint64_t gap = xl_read_varint(r);
        length = xl_read_varint(r);
        if (r->failed || smallest < gap + 2 || length > smallest - gap - 2)
            return false;
        largest = smallest - gap - 2;
        smallest = largest - length;
        if (ack->range_count < XL_ACK_RANGES_MAX)
            ack->ranges[ack->range_count++] = (xl_ack_range){smallest, largest};
    }
    return true;
}

static bool parse_ack(xl_reader *r, uint64_t type, bool qoe_in_ack, xl_ack_frame *ack) {
    if (!parse_ack_ranges(r, ack))
        return false;
    ack->has_ecn = type & 1;
    ack->ect0 = ack->has_ecn ? xl_read_varint(r) : 0;
    ack->ect1 = ack->has_ecn ? xl_read_varint(r) : 0;
    ack->ce = ack->has_ecn ? xl_read_varint(r) : 0;
    ack->has_qoe = false;
    ack->qoe = (xl_qoe){0};
    if (!qoe_in_ack || (type != XL_FRAME_ACK_MP && type != XL_FRAME_ACK_MP_ECN))
        return true;
    size_t len = xl_read_u8(r);
    const uint8_t *signal = xl_read_bytes(r, len);
    ack->has_qoe = signal && len > 0;
    return signal && (len == 0 || parse_qoe(signal, len, &ack->qoe));
}

/* A length and that many bytes. */
static const uint8_t *parse_sized(xl_reader *r, size_t *len) {
    uint64_t n = xl_read_varint(r);
    if (n > xl_reader_left(r)) {
        r->failed = true;
        return NULL;
    }
    *len = (size_t)n;
    return xl_read_bytes(r, *len);
}

/* RFC 9000 section 19.8; without the LEN bit the data reaches to the end of the packet. */
static bool parse_stream(xl_reader *r, uint64_t type, xl_frame *out) {
    out->type = XL_FRAME_STREAM;
    out->stream.stream_id = xl_read_varint(r);
    out->stream.offset = type & 4 ? xl_read_varint(r) : 0;
    out->stream.fin = type & 1;
    if (type & 2) {
        out->stream.data = parse_sized(r, &out->stream.len);
    } else {
        out->stream.len = xl_reader_left(r);
        out->stream.data = xl_read_bytes(r, out->stream.len);
    }
    return !r->failed && out->stream.len <= XL_VARINT_MAX - out->stream.offset;
}

static bool parse_new_cid(xl_reader *r, xl_frame *out) {
    size_t len = xl_read_u8(r);
    const uint8_t *id = xl_read_bytes(r, len);
    out->new_cid.reset_token = xl_read_bytes(r, 16);
    if (r->failed || len < 1 || len > XL_MAX_CID_BYTES || out->new_cid.retire_prior_to > out->new_cid.sequence)
        return false;
    out->new_cid.cid.len = (uint8_t)len;
    memcpy(out->new_cid.cid.id, id, len);
    return true;
}

/* The signal of a QOE_CONTROL_SIGNALS frame is opaque: one that we cannot read is no error. */
static bool parse_qoe_frame(xl_reader *r, xl_frame *out) {
    out->qoe.len = xl_read_u8(r);
    out->qoe.signal = xl_read_bytes(r, out->qoe.len);
    out->qoe.has_qoe = !r->failed && parse_qoe(out->qoe.signal, out->qoe.len, &out->qoe.qoe);
    if (!out->qoe.has_qoe)
        out->qoe.qoe = (xl_qoe){0};
    return true;
}

/* RFC 9221 section 4; without the LEN bit the data reaches to the end of the packet. */
static bool parse_datagram(xl_reader *r, uint64_t type, const uint8_t *frame, xl_frame *out) {
    out->type = XL_FRAME_DATAGRAM;
    out->datagram.len = xl_reader_left(r);
    out->datagram.data = type & 1 ? parse_sized(r, &out->datagram.len) : xl_read_bytes(r, out->datagram.len);
    out->datagram.frame_bytes = r->failed ? 0 : (size_t)(r->p - frame);
    return true;
}

/* Parses what comes after the frame's numbers. */
static bool parse_rest(xl_reader *r, uint64_t type, bool qoe_in_ack, xl_frame *out) {
    switch (type) {
    case XL_FRAME_PADDING:
        while (xl_reader_left(r) > 0 && *r->p == 0)
            r->p++;
        return true;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
        return parse_ack(r, type, qoe_in_ack, &out->ack);
    case XL_FRAME_CRYPTO:
        out->crypto.data = parse_sized(r, &out->crypto.len);
        return !r->failed && out->crypto.len <= XL_VARINT_MAX - out->crypto.offset;
    case XL_FRAME_NEW_TOKEN:
        out->new_token.token = parse_sized(r, &out->new_token.len);
        return !r->failed && out->new_token.len > 0;
    case XL_FRAME_MAX_STREAMS_BIDI:
    case XL_FRAME_MAX_STREAMS_UNI:
    case XL_FRAME_STREAMS_BLOCKED_BIDI:
    case XL_FRAME_STREAMS_BLOCKED_UNI:
        return out->max.maximum <= MAX_STREAMS;
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        return parse_new_cid(r, out);
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        out->path.data = xl_read_bytes(r, 8);
        return true;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        out->close.reason = parse_sized(r, &out->close.reason_len);
        return true;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        return parse_qoe_frame(r, out);
    case XL_FRAME_PATH_STATUS:
        return out->path_status.status <= XL_STATUS_AVAILABLE;
    case XL_FRAME_PATH_STATUS_BACKUP:
    case XL_FRAME_PATH_STATUS_AVAILABLE:
        out->path_status.status = type == XL_FRAME_PATH_STATUS_BACKUP ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE;
        return true;
    default:
        return true;
    }
}

static bool parse_body(xl_reader *r, uint64_t type, const uint8_t *frame, bool qoe_in_ack, xl_frame *out) {
    if ((type & ~UINT64_C(7)) == XL_FRAME_STREAM)
        return parse_stream(r, type, out);
    if ((type & ~UINT64_C(1)) == XL_FRAME_DATAGRAM)
        return parse_datagram(r, type, frame, out);
    const xl_frame_info *info = xl_frame_info_of(type);
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++)
        out->number[i] = info->numbers[i] ? xl_read_varint(r) : 0;
    return info->packets != 0 && parse_rest(r, type, qoe_in_ack, out);
}

uint64_t xl_frame_parse(xl_reader *r, bool qoe_in_ack, xl_frame *out) {
    const uint8_t *start = r->p;
    out->type = xl_read_varint(r);
    if (r->failed)
        return XL_QERR_FRAME_ENCODING;
    /* Section 12.4: any type that is not in its shortest form is a PROTOCOL_VIOLATION. */
    if ((size_t)(r->p - start) != xl_varint_len(out->type))
        return XL_QERR_PROTOCOL_VIOLATION;
    if (!parse_body(r, out->type, start, qoe_in_ack, out) || r->failed)
        return XL_QERR_FRAME_ENCODING;
    return 0;
}
