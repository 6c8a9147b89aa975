/* Frames: RFC 9000 section 19, and the two multipath dialects: `xlink` (draft-liu-multipath-quic with the paper's QoE
 * field) and `ietf` (RFC 10069, frame_ietf.h).
 * Parsing yields a view into the packet; nothing is copied. */
#pragma once

#include "wire/cursor.h"
#include "wire/frame_ietf.h"
#include "wire/packet.h"

enum {
    XL_FRAME_PADDING = 0x00,
    XL_FRAME_PING = 0x01,
    XL_FRAME_ACK = 0x02,
    XL_FRAME_ACK_ECN = 0x03,
    XL_FRAME_RESET_STREAM = 0x04,
    XL_FRAME_STOP_SENDING = 0x05,
    XL_FRAME_CRYPTO = 0x06,
    XL_FRAME_NEW_TOKEN = 0x07,
    XL_FRAME_STREAM = 0x08, /* 0x08..0x0f are all reported as this */
    XL_FRAME_MAX_DATA = 0x10,
    XL_FRAME_MAX_STREAM_DATA = 0x11,
    XL_FRAME_MAX_STREAMS_BIDI = 0x12,
    XL_FRAME_MAX_STREAMS_UNI = 0x13,
    XL_FRAME_DATA_BLOCKED = 0x14,
    XL_FRAME_STREAM_DATA_BLOCKED = 0x15,
    XL_FRAME_STREAMS_BLOCKED_BIDI = 0x16,
    XL_FRAME_STREAMS_BLOCKED_UNI = 0x17,
    XL_FRAME_NEW_CONNECTION_ID = 0x18,
    XL_FRAME_RETIRE_CONNECTION_ID = 0x19,
    XL_FRAME_PATH_CHALLENGE = 0x1a,
    XL_FRAME_PATH_RESPONSE = 0x1b,
    XL_FRAME_CONNECTION_CLOSE = 0x1c,
    XL_FRAME_APPLICATION_CLOSE = 0x1d,
    XL_FRAME_HANDSHAKE_DONE = 0x1e,
    XL_FRAME_IMMEDIATE_ACK = 0x1f, /* draft-ietf-quic-ack-frequency */
    XL_FRAME_DATAGRAM = 0x30,      /* RFC 9221; 0x31 is reported as this */
    XL_FRAME_ACK_FREQUENCY = 0xaf, /* draft-ietf-quic-ack-frequency */
    XL_FRAME_ACK_MP = 0xbaba00,
    XL_FRAME_ACK_MP_ECN = 0xbaba01,
    XL_FRAME_QOE_CONTROL_SIGNALS = 0xbaba02,
    XL_FRAME_PATH_STATUS = 0xbaba03,
};

/* Transport error codes, RFC 9000 section 20.1, and the dialect's. */
enum {
    XL_QERR_NO_ERROR = 0x00,
    XL_QERR_INTERNAL = 0x01,
    XL_QERR_CONNECTION_REFUSED = 0x02,
    XL_QERR_FLOW_CONTROL = 0x03,
    XL_QERR_STREAM_LIMIT = 0x04,
    XL_QERR_STREAM_STATE = 0x05,
    XL_QERR_FINAL_SIZE = 0x06,
    XL_QERR_FRAME_ENCODING = 0x07,
    XL_QERR_TRANSPORT_PARAMETER = 0x08,
    XL_QERR_CONNECTION_ID_LIMIT = 0x09,
    XL_QERR_PROTOCOL_VIOLATION = 0x0a,
    XL_QERR_INVALID_TOKEN = 0x0b,
    XL_QERR_CRYPTO_BUFFER_EXCEEDED = 0x0d,
    XL_QERR_KEY_UPDATE = 0x0e,
    XL_QERR_AEAD_LIMIT = 0x0f,
    XL_QERR_VERSION_NEGOTIATION = 0x11, /* RFC 9368 section 8 */
    XL_QERR_CRYPTO_BASE = 0x0100,       /* + TLS alert */
    XL_QERR_MP_PROTOCOL_VIOLATION = 0xba01,
};

/* An ACK range [smallest, largest]. */
typedef struct {
    uint64_t smallest, largest;
} xl_ack_range;

#define XL_ACK_RANGES_MAX 64 /* further (older) ranges of a received frame are parsed, checked and dropped */

typedef struct {
    uint64_t path_id;   /* ACK_MP, PATH_ACK; 0 for ACK */
    uint64_t delay;     /* as on the wire: scale by the peer's ack_delay_exponent */
    size_t range_count; /* ranges[0] holds the largest */
    xl_ack_range ranges[XL_ACK_RANGES_MAX];
    bool has_ecn;
    uint64_t ect0, ect1, ce;
    bool has_qoe; /* the frame contains a non-empty QoE control signal */
    xl_qoe qoe;
} xl_ack_frame;

#define XL_FRAME_NUMBERS 4

/* What is known of a frame type. */
typedef struct {
    const char *name; /* qlog's: "stream", "ack_mp" …, or "unknown" */
    unsigned packets; /* bit i: it may occur in packets of type i (RFC 9000 table 3); 0: the type is unknown */
    /* qlog's names of the numbers that come first, in their order; NULL: it lacks the number that other types have in
     * this place. STREAM and DATAGRAM have none here: their type says which are present. */
    const char *numbers[XL_FRAME_NUMBERS];
    bool is_silent;    /* not ack-eliciting */
    bool is_probing;   /* section 9.1 */
    size_t rest_bytes; /* upper bound of what follows the numbers, if it has one that matters */
} xl_frame_info;

const xl_frame_info *xl_frame_info_of(uint64_t type);

typedef struct {
    uint64_t type;
    union {
        uint64_t number[XL_FRAME_NUMBERS]; /* as in xl_frame_info.numbers; 0: the type lacks it */
        xl_ack_frame ack;
        struct {
            uint64_t stream_id, error_code, final_size;
        } reset_stream;
        struct {
            uint64_t stream_id, error_code;
        } stop_sending;
        struct {
            uint64_t offset;
            const uint8_t *data;
            size_t len;
        } crypto;
        struct {
            const uint8_t *token;
            size_t len;
        } new_token;
        struct {
            uint64_t stream_id, offset;
            const uint8_t *data;
            size_t len;
            bool fin;
        } stream;
        struct {
            const uint8_t *data;
            size_t len, frame_bytes; /* frame_bytes: size of the whole frame, with type and length */
        } datagram;
        struct {
            uint64_t sequence, threshold, max_delay_us, reordering;
        } ack_frequency;
        struct {
            uint64_t stream_id, maximum;
        } max; /* MAX_DATA, MAX_STREAM_DATA, MAX_STREAMS, MAX_PATH_ID, their BLOCKED kinds */
        struct {
            uint64_t path_id, sequence, retire_prior_to; /* path_id: 0 for NEW_CONNECTION_ID */
            xl_cid cid;
            const uint8_t *reset_token;
        } new_cid;
        struct {
            uint64_t path_id, sequence; /* path_id: 0 for RETIRE_CONNECTION_ID */
        } retire_cid;
        struct {
            const uint8_t *data;
        } path; /* 8 bytes: PATH_CHALLENGE, PATH_RESPONSE */
        struct {
            uint64_t error_code, frame_type;
            const uint8_t *reason;
            size_t reason_len;
        } close;
        struct {
            uint64_t path_id;
            const uint8_t *signal;
            size_t len;
            bool has_qoe;
            xl_qoe qoe;
        } qoe;
        struct {
            uint64_t path_id, sequence, status, priority;
        } path_status; /* PATH_STATUS_BACKUP and _AVAILABLE too */
        struct {
            uint64_t path_id, error_code;
        } path_abandon;
        struct {
            uint64_t path_id, next_sequence;
        } path_cids_blocked;
    };
} xl_frame;

/* Parses one frame. qoe_in_ack: both ends negotiated the QoE field of ACK_MP. Returns 0 or the transport error code to
 * close with: XL_QERR_FRAME_ENCODING, for unknown types too, or XL_QERR_PROTOCOL_VIOLATION for a type not in its
 * shortest form (section 12.4). A run of PADDING counts as one frame. A parsed frame obeys the limits that need no
 * state: ACK ranges do not underflow, offset + length <= 2^62 - 1, stream counts <= 2^60, 1 <= CID length <= 20, the
 * status in PATH_STATUS is known. */
uint64_t xl_frame_parse(xl_reader *, bool qoe_in_ack, xl_frame *out);

/* Upper bound of a frame's size, to reserve room before it is written. Not for frames with ranges or data. */
size_t xl_frame_most_bytes(uint64_t type);

/* Writers. Each writes one whole frame or sets writer->failed. */
/* Writes a type and its numbers, as in xl_frame.number: those that the type lacks are ignored. */
void xl_frame_put_numbers(xl_writer *, uint64_t type, const uint64_t number[XL_FRAME_NUMBERS]);
#define XL_FRAME_PUT(w, type, ...) xl_frame_put_numbers(w, type, (const uint64_t[XL_FRAME_NUMBERS]){__VA_ARGS__})
/* Writes as many of the ranges as fit; ranges are descending, ranges[0] is the largest. type: XL_FRAME_ACK, or
 * XL_FRAME_ACK_MP or XL_FRAME_PATH_ACK with path_id. qoe_field: the QoE field of ACK_MP was negotiated; qoe NULL:
 * "nothing new". Returns the number of ranges written. 0: not even one fits; nothing was written and the writer has not
 * failed, so that other frames may follow. */
size_t xl_frame_put_ack(xl_writer *, const xl_ack_range *ranges, size_t count, uint64_t delay, uint64_t type,
                        uint64_t path_id, bool qoe_field, const xl_qoe *qoe);
/* Length of the QoE field of an ACK_MP frame, 1 to 33 bytes. */
size_t xl_frame_qoe_signal_len(const xl_qoe *);
/* Adds ECN counts to an ACK frame of any kind, which begins at `frame` and ends at the writer's position. The counts
 * come before its last `tail` bytes (the QoE field, at most 64 bytes). If there is no room, the frame does not
 * change. */
void xl_frame_add_ecn_counts(xl_writer *, uint8_t *frame, size_t tail, uint64_t ect0, uint64_t ect1, uint64_t ce);
/* Headers of frames with a length; the caller copies len bytes of data after them. */
void xl_frame_put_crypto_header(xl_writer *, uint64_t offset, size_t len);
void xl_frame_put_datagram_header(xl_writer *, size_t len);
/* Header of a STREAM frame with an explicit length; the caller copies the data after it. */
void xl_frame_put_stream_header(xl_writer *, uint64_t stream_id, uint64_t offset, size_t len, bool fin);
/* Upper bound of that header's size for a len of at most 16383. */
#define XL_STREAM_HEADER_BYTES (1 + 8 + 8 + 2) /* the same for any stream and offset */
size_t xl_frame_stream_header_len(uint64_t stream_id, uint64_t offset);
/* NEW_CONNECTION_ID, PATH_NEW_CONNECTION_ID. */
void xl_frame_put_new_cid(xl_writer *, uint64_t type, uint64_t path_id, uint64_t sequence, uint64_t retire_prior_to,
                          const xl_cid *, const uint8_t token[16]);
void xl_frame_put_path(xl_writer *, uint64_t type, const uint8_t data[8]); /* PATH_CHALLENGE, PATH_RESPONSE */
/* reason may be NULL; a reason that does not fit is truncated. */
void xl_frame_put_close(xl_writer *, bool application, uint64_t error_code, uint64_t frame_type, const char *reason);
void xl_frame_put_new_token(xl_writer *, const uint8_t *token, size_t len);
size_t xl_frame_datagram_header_len(size_t len);
/* qoe NULL: "nothing new". */
void xl_frame_put_qoe(xl_writer *, uint64_t path_id, const xl_qoe *);
