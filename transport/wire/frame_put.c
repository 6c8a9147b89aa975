/* Writes frames. frame.c parses them. */
#include "wire/frame.h"

#include <string.h>

void xl_frame_put_numbers(xl_writer *w, uint64_t type, const uint64_t number[XL_FRAME_NUMBERS]) {
    const xl_frame_info *info = xl_frame_info_of(type);
    xl_write_varint(w, type);
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++)
        if (info->numbers[i])
            xl_write_varint(w, number[i]);
}

void xl_frame_put_new_token(xl_writer *w, const uint8_t *token, size_t len) {
    xl_write_varint(w, XL_FRAME_NEW_TOKEN);
    xl_write_varint(w, len);
    xl_write_bytes(w, token, len);
}

void xl_frame_put_datagram_header(xl_writer *w, size_t len) {
    xl_write_varint(w, XL_FRAME_DATAGRAM | 1);
    xl_write_varint(w, len);
}

size_t xl_frame_datagram_header_len(size_t len) {
    return 1 + xl_varint_len(len);
}

size_t xl_frame_most_bytes(uint64_t type) {
    const xl_frame_info *info = xl_frame_info_of(type);
    size_t bytes = xl_varint_len(type) + info->rest_bytes;
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++)
        bytes += info->numbers[i] ? xl_varint_len(XL_VARINT_MAX) : 0;
    return bytes;
}

static uint64_t clamped(uint64_t v) {
    return v > XL_VARINT_MAX ? XL_VARINT_MAX : v;
}

static size_t qoe_content_len(const xl_qoe *qoe) {
    return xl_varint_len(clamped(qoe->cached_bytes)) + xl_varint_len(clamped(qoe->cached_frames)) +
           xl_varint_len(clamped(qoe->bps)) + xl_varint_len(clamped(qoe->fps));
}

size_t xl_frame_qoe_signal_len(const xl_qoe *qoe) {
    return 1 + (qoe ? qoe_content_len(qoe) : 0);
}

/* Length (8 bits), then the four varints; NULL is length 0, "nothing new". At most 1 + 4 * 8 bytes. */
static void put_qoe_signal(xl_writer *w, const xl_qoe *qoe) {
    if (!qoe) {
        xl_write_u8(w, 0);
        return;
    }
    xl_write_u8(w, (uint8_t)qoe_content_len(qoe));
    xl_write_varint(w, clamped(qoe->cached_bytes));
    xl_write_varint(w, clamped(qoe->cached_frames));
    xl_write_varint(w, clamped(qoe->bps));
    xl_write_varint(w, clamped(qoe->fps));
}

static uint64_t range_length(const xl_ack_range *range) {
    return range->largest - range->smallest;
}

/* Packets between two neighbouring ranges, less one (RFC 9000 section 19.3.1). */
static uint64_t range_gap(const xl_ack_range *newer, const xl_ack_range *older) {
    return newer->smallest - older->largest - 2;
}

static bool is_range(const xl_ack_range *range) {
    return range->smallest <= range->largest && range->largest <= XL_VARINT_MAX;
}

static bool is_below(const xl_ack_range *older, const xl_ack_range *newer) {
    return is_range(older) && older->largest < XL_VARINT_MAX - 1 && older->largest + 2 <= newer->smallest;
}

/* Returns how many of the ranges fit into `room` together with `fixed` bytes. The count of further ranges is itself a
 * varint. */
static size_t ranges_that_fit(const xl_ack_range *ranges, size_t count, size_t fixed, size_t room) {
    if (count == 0 || !is_range(&ranges[0]))
        return 0;
    size_t used = fixed + xl_varint_len(range_length(&ranges[0]));
    if (used + xl_varint_len(0) > room)
        return 0;
    size_t n = 1;
    for (; n < count && is_below(&ranges[n], &ranges[n - 1]); n++) {
        used += xl_varint_len(range_gap(&ranges[n - 1], &ranges[n])) + xl_varint_len(range_length(&ranges[n]));
        if (used + xl_varint_len(n) > room)
            break;
    }
    return n;
}

size_t xl_frame_put_ack(xl_writer *w, const xl_ack_range *ranges, size_t count, uint64_t delay, uint64_t type,
                        uint64_t path_id, bool qoe_field, const xl_qoe *qoe) {
    bool with_qoe = type == XL_FRAME_ACK_MP && qoe_field, with_path = type != XL_FRAME_ACK;
    delay = clamped(delay);
    if (w->failed || count == 0)
        return 0;
    size_t fixed = xl_varint_len(type) + (with_path ? xl_varint_len(path_id) : 0) + xl_varint_len(ranges[0].largest) +
                   xl_varint_len(delay) + (with_qoe ? xl_frame_qoe_signal_len(qoe) : 0);
    size_t n = ranges_that_fit(ranges, count, fixed, xl_writer_left(w));
    if (n == 0)
        return 0;

    xl_write_varint(w, type);
    if (with_path)
        xl_write_varint(w, path_id);
    xl_write_varint(w, ranges[0].largest);
    xl_write_varint(w, delay);
    xl_write_varint(w, n - 1);
    xl_write_varint(w, range_length(&ranges[0]));
    for (size_t i = 1; i < n; i++) {
        xl_write_varint(w, range_gap(&ranges[i - 1], &ranges[i]));
        xl_write_varint(w, range_length(&ranges[i]));
    }
    if (with_qoe)
        put_qoe_signal(w, qoe);
    return n;
}

void xl_frame_put_crypto_header(xl_writer *w, uint64_t offset, size_t len) {
    XL_FRAME_PUT(w, XL_FRAME_CRYPTO, offset);
    xl_write_varint(w, len);
}

void xl_frame_put_stream_header(xl_writer *w, uint64_t stream_id, uint64_t offset, size_t len, bool fin) {
    xl_write_varint(w, (uint64_t)XL_FRAME_STREAM | (offset > 0 ? 4u : 0u) | 2u | (fin ? 1u : 0u));
    xl_write_varint(w, stream_id);
    if (offset > 0)
        xl_write_varint(w, offset);
    xl_write_varint(w, len);
}

size_t xl_frame_stream_header_len(uint64_t stream_id, uint64_t offset) {
    return 1 + xl_varint_len(stream_id) + (offset > 0 ? xl_varint_len(offset) : 0) + 2;
}

void xl_frame_put_new_cid(xl_writer *w, uint64_t type, uint64_t path_id, uint64_t sequence, uint64_t retire_prior_to,
                          const xl_cid *cid, const uint8_t token[16]) {
    XL_FRAME_PUT(w, type, path_id, sequence, retire_prior_to);
    xl_packet_put_cid(w, cid);
    xl_write_bytes(w, token, 16);
}

void xl_frame_put_path(xl_writer *w, uint64_t type, const uint8_t data[8]) {
    xl_write_varint(w, type);
    xl_write_bytes(w, data, 8);
}

/* The longest prefix of the reason that fits in `room` with its length, cut between UTF-8 characters. */
static size_t reason_prefix(const char *reason, size_t room) {
    size_t full = !reason ? 0 : strlen(reason);
    size_t len = full;
    while (len > 0 && (xl_varint_len(len) + len > room || (len < full && ((uint8_t)reason[len] & 0xc0) == 0x80)))
        len--;
    return len;
}

void xl_frame_put_close(xl_writer *w, bool application, uint64_t error_code, uint64_t frame_type, const char *reason) {
    xl_write_varint(w, application ? XL_FRAME_APPLICATION_CLOSE : XL_FRAME_CONNECTION_CLOSE);
    xl_write_varint(w, error_code);
    if (!application)
        xl_write_varint(w, frame_type);
    size_t len = reason_prefix(reason, xl_writer_left(w));
    xl_write_varint(w, len);
    xl_write_bytes(w, (const uint8_t *)reason, len);
}

void xl_frame_put_qoe(xl_writer *w, uint64_t path_id, const xl_qoe *qoe) {
    XL_FRAME_PUT(w, XL_FRAME_QOE_CONTROL_SIGNALS, path_id);
    put_qoe_signal(w, qoe);
}
