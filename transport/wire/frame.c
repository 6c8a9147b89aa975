#include "wire/frame_parts.h"

#include <string.h>

#define MAX_STREAMS (UINT64_C(1) << 60)

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

bool xl_frame_parse_ack_body(xl_reader *r, bool has_ecn, xl_ack_frame *ack) {
    if (!parse_ack_ranges(r, ack))
        return false;
    ack->has_ecn = has_ecn;
    ack->ect0 = has_ecn ? xl_read_varint(r) : 0;
    ack->ect1 = has_ecn ? xl_read_varint(r) : 0;
    ack->ce = has_ecn ? xl_read_varint(r) : 0;
    return true;
}

static bool parse_ack(xl_reader *r, uint64_t type, bool qoe_in_ack, xl_ack_frame *ack) {
    bool multipath = type == XL_FRAME_ACK_MP || type == XL_FRAME_ACK_MP_ECN;
    ack->path_id = multipath ? xl_read_varint(r) : 0;
    if (!xl_frame_parse_ack_body(r, type == XL_FRAME_ACK_ECN || type == XL_FRAME_ACK_MP_ECN, ack))
        return false;
    ack->has_qoe = false;
    ack->qoe = (xl_qoe){0};
    if (!multipath || !qoe_in_ack)
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

static bool parse_crypto(xl_reader *r, xl_frame *out) {
    out->crypto.offset = xl_read_varint(r);
    out->crypto.data = parse_sized(r, &out->crypto.len);
    return !r->failed && out->crypto.len <= XL_VARINT_MAX - out->crypto.offset;
}

static bool parse_max(xl_reader *r, uint64_t type, xl_frame *out) {
    bool of_stream = type == XL_FRAME_MAX_STREAM_DATA || type == XL_FRAME_STREAM_DATA_BLOCKED;
    bool of_count = type == XL_FRAME_MAX_STREAMS_BIDI || type == XL_FRAME_MAX_STREAMS_UNI ||
                    type == XL_FRAME_STREAMS_BLOCKED_BIDI || type == XL_FRAME_STREAMS_BLOCKED_UNI;
    out->max.stream_id = of_stream ? xl_read_varint(r) : 0;
    out->max.maximum = xl_read_varint(r);
    return !of_count || out->max.maximum <= MAX_STREAMS;
}

bool xl_frame_parse_new_cid_body(xl_reader *r, xl_frame *out) {
    out->new_cid.sequence = xl_read_varint(r);
    out->new_cid.retire_prior_to = xl_read_varint(r);
    size_t len = xl_read_u8(r);
    const uint8_t *id = xl_read_bytes(r, len);
    out->new_cid.reset_token = xl_read_bytes(r, 16);
    if (r->failed || len < 1 || len > XL_MAX_CID_BYTES || out->new_cid.retire_prior_to > out->new_cid.sequence)
        return false;
    out->new_cid.cid.len = (uint8_t)len;
    memcpy(out->new_cid.cid.id, id, len);
    return true;
}

static bool parse_close(xl_reader *r, uint64_t type, xl_frame *out) {
    out->close.error_code = xl_read_varint(r);
    out->close.frame_type = type == XL_FRAME_CONNECTION_CLOSE ? xl_read_varint(r) : 0;
    out->close.reason = parse_sized(r, &out->close.reason_len);
    return true;
}

/* The signal of a QOE_CONTROL_SIGNALS frame is opaque: one that we cannot read is no error. */
static bool parse_qoe_frame(xl_reader *r, xl_frame *out) {
    out->qoe.path_id = xl_read_varint(r);
    out->qoe.len = xl_read_u8(r);
    out->qoe.signal = xl_read_bytes(r, out->qoe.len);
    out->qoe.has_qoe = !r->failed && parse_qoe(out->qoe.signal, out->qoe.len, &out->qoe.qoe);
    if (!out->qoe.has_qoe)
        out->qoe.qoe = (xl_qoe){0};
    return true;
}

static bool parse_path_status(xl_reader *r, xl_frame *out) {
    out->path_status.path_id = xl_read_varint(r);
    out->path_status.sequence = xl_read_varint(r);
    out->path_status.status = xl_read_varint(r);
    out->path_status.priority = xl_read_varint(r);
    return out->path_status.status <= XL_STATUS_AVAILABLE;
}

/* RFC 9221 section 4; without the LEN bit the data reaches to the end of the packet. */
static bool parse_datagram(xl_reader *r, uint64_t type, const uint8_t *frame, xl_frame *out) {
    out->type = XL_FRAME_DATAGRAM;
    out->datagram.len = xl_reader_left(r);
    out->datagram.data = type & 1 ? parse_sized(r, &out->datagram.len) : xl_read_bytes(r, out->datagram.len);
    out->datagram.frame_bytes = r->failed ? 0 : (size_t)(r->p - frame);
    return true;
}

static bool parse_ack_frequency(xl_reader *r, xl_frame *out) {
    out->ack_frequency.sequence = xl_read_varint(r);
    out->ack_frequency.threshold = xl_read_varint(r);
    out->ack_frequency.max_delay_us = xl_read_varint(r);
    out->ack_frequency.reordering = xl_read_varint(r);
    return true;
}

static bool parse_body(xl_reader *r, uint64_t type, const uint8_t *frame, bool qoe_in_ack, xl_frame *out) {
    switch (type) {
    case XL_FRAME_PADDING:
        while (xl_reader_left(r) > 0 && *r->p == 0)
            r->p++;
        return true;
    case XL_FRAME_PING:
    case XL_FRAME_HANDSHAKE_DONE:
    case XL_FRAME_IMMEDIATE_ACK:
        return true;
    case XL_FRAME_DATAGRAM:
    case XL_FRAME_DATAGRAM | 1:
        return parse_datagram(r, type, frame, out);
    case XL_FRAME_ACK_FREQUENCY:
        return parse_ack_frequency(r, out);
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
        return parse_ack(r, type, qoe_in_ack, &out->ack);
    case XL_FRAME_RESET_STREAM:
        out->reset_stream.stream_id = xl_read_varint(r);
        out->reset_stream.error_code = xl_read_varint(r);
        out->reset_stream.final_size = xl_read_varint(r);
        return true;
    case XL_FRAME_STOP_SENDING:
        out->stop_sending.stream_id = xl_read_varint(r);
        out->stop_sending.error_code = xl_read_varint(r);
        return true;
    case XL_FRAME_CRYPTO:
        return parse_crypto(r, out);
    case XL_FRAME_NEW_TOKEN:
        out->new_token.token = parse_sized(r, &out->new_token.len);
        return !r->failed && out->new_token.len > 0;
    case XL_FRAME_MAX_DATA:
    case XL_FRAME_MAX_STREAM_DATA:
    case XL_FRAME_MAX_STREAMS_BIDI:
    case XL_FRAME_MAX_STREAMS_UNI:
    case XL_FRAME_DATA_BLOCKED:
    case XL_FRAME_STREAM_DATA_BLOCKED:
    case XL_FRAME_STREAMS_BLOCKED_BIDI:
    case XL_FRAME_STREAMS_BLOCKED_UNI:
        return parse_max(r, type, out);
    case XL_FRAME_NEW_CONNECTION_ID:
        out->new_cid.path_id = 0;
        return xl_frame_parse_new_cid_body(r, out);
    case XL_FRAME_RETIRE_CONNECTION_ID:
        out->retire_cid.path_id = 0;
        out->retire_cid.sequence = xl_read_varint(r);
        return true;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        out->path.data = xl_read_bytes(r, 8);
        return true;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        return parse_close(r, type, out);
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        return parse_qoe_frame(r, out);
    case XL_FRAME_PATH_STATUS:
        return parse_path_status(r, out);
    default:
        if (xl_frame_is_ietf(type))
            return xl_frame_parse_ietf(r, type, out);
        return type >= XL_FRAME_STREAM && type < XL_FRAME_MAX_DATA && parse_stream(r, type, out);
    }
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

bool xl_frame_is_ack_eliciting(uint64_t type) {
    switch (type) {
    case XL_FRAME_PADDING:
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        return false;
    default:
        return true;
    }
}

bool xl_frame_is_probing(uint64_t type) {
    return type == XL_FRAME_PATH_CHALLENGE || type == XL_FRAME_PATH_RESPONSE || type == XL_FRAME_NEW_CONNECTION_ID ||
           type == XL_FRAME_PATH_NEW_CONNECTION_ID || type == XL_FRAME_PADDING;
}

/* The packet types in which a frame may occur, one bit each (RFC 9000 table 3): I(nitial), H(andshake), 0(-RTT),
 * 1(-RTT). */
enum {
    IN_1 = 1 << XL_PACKET_1RTT,
    IN_01 = 1 << XL_PACKET_0RTT | IN_1,
    IN_IH1 = 1 << XL_PACKET_INITIAL | 1 << XL_PACKET_HANDSHAKE | IN_1,
    IN_IH01 = IN_IH1 | IN_01,
};

/* The qlog name of a frame type, and the packet types in which it may occur. */
typedef struct {
    const char *name;
    unsigned packets;
} frame_info;

static frame_info info_of(uint64_t type) {
    static const frame_info quic_v1[] = {
        [XL_FRAME_PADDING] = {"padding", IN_IH01},
        [XL_FRAME_PING] = {"ping", IN_IH01},
        [XL_FRAME_ACK] = {"ack", IN_IH1},
        [XL_FRAME_ACK_ECN] = {"ack", IN_IH1},
        [XL_FRAME_RESET_STREAM] = {"reset_stream", IN_01},
        [XL_FRAME_STOP_SENDING] = {"stop_sending", IN_01},
        [XL_FRAME_CRYPTO] = {"crypto", IN_IH1},
        [XL_FRAME_NEW_TOKEN] = {"new_token", IN_1},
        [XL_FRAME_STREAM... XL_FRAME_STREAM + 7] = {"stream", IN_01},
        [XL_FRAME_MAX_DATA] = {"max_data", IN_01},
        [XL_FRAME_MAX_STREAM_DATA] = {"max_stream_data", IN_01},
        [XL_FRAME_MAX_STREAMS_BIDI] = {"max_streams", IN_01},
        [XL_FRAME_MAX_STREAMS_UNI] = {"max_streams", IN_01},
        [XL_FRAME_DATA_BLOCKED] = {"data_blocked", IN_01},
        [XL_FRAME_STREAM_DATA_BLOCKED] = {"stream_data_blocked", IN_01},
        [XL_FRAME_STREAMS_BLOCKED_BIDI] = {"streams_blocked", IN_01},
        [XL_FRAME_STREAMS_BLOCKED_UNI] = {"streams_blocked", IN_01},
        [XL_FRAME_NEW_CONNECTION_ID] = {"new_connection_id", IN_01},
        [XL_FRAME_RETIRE_CONNECTION_ID] = {"retire_connection_id", IN_01},
        [XL_FRAME_PATH_CHALLENGE] = {"path_challenge", IN_01},
        [XL_FRAME_PATH_RESPONSE] = {"path_response", IN_1},
        [XL_FRAME_CONNECTION_CLOSE] = {"connection_close", IN_IH01},
        [XL_FRAME_APPLICATION_CLOSE] = {"connection_close", IN_01},
        [XL_FRAME_HANDSHAKE_DONE] = {"handshake_done", IN_1},
        [XL_FRAME_IMMEDIATE_ACK] = {"immediate_ack", IN_1},
    };
    static const frame_info multipath[] = {
        [XL_FRAME_ACK_MP - XL_FRAME_ACK_MP] = {"ack_mp", IN_1},
        [XL_FRAME_ACK_MP_ECN - XL_FRAME_ACK_MP] = {"ack_mp", IN_1},
        [XL_FRAME_QOE_CONTROL_SIGNALS - XL_FRAME_ACK_MP] = {"qoe_control_signals", IN_1},
        [XL_FRAME_PATH_STATUS - XL_FRAME_ACK_MP] = {"path_status", IN_1},
    };
    if (type < sizeof quic_v1 / sizeof quic_v1[0])
        return quic_v1[type];
    if (type == XL_FRAME_DATAGRAM || type == (XL_FRAME_DATAGRAM | 1))
        return (frame_info){"datagram", IN_01};
    if (type == XL_FRAME_ACK_FREQUENCY)
        return (frame_info){"ack_frequency", IN_1};
    if (type >= XL_FRAME_ACK_MP && type <= XL_FRAME_PATH_STATUS)
        return multipath[type - XL_FRAME_ACK_MP];
    if (xl_frame_is_ietf(type))
        return (frame_info){xl_frame_ietf_name(type), IN_1};
    return (frame_info){"unknown", 0};
}

bool xl_frame_is_allowed(uint64_t type, xl_packet_type packet) {
    return info_of(type).packets >> packet & 1;
}

const char *xl_frame_name(uint64_t type) {
    return info_of(type).name;
}
