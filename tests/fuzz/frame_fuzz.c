/* Frames. Properties: a parsed frame keeps the limits of the header file, and a frame that is written again is parsed
 * as the same. All frames go into a qlog, whose records must be JSON. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/qlog.h"
#include "wire/frame.h"

#define ROOM 4096

static bool is_same_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len) {
    return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static bool is_same_qoe(const xl_qoe *a, const xl_qoe *b) {
    return a->cached_bytes == b->cached_bytes && a->cached_frames == b->cached_frames && a->bps == b->bps &&
           a->fps == b->fps;
}

static void check_ack(const xl_ack_frame *ack) {
    FUZZ_CHECK(ack->range_count >= 1 && ack->range_count <= XL_ACK_RANGES_MAX);
    for (size_t i = 0; i < ack->range_count; i++) {
        FUZZ_CHECK(ack->ranges[i].smallest <= ack->ranges[i].largest);
        FUZZ_CHECK(i == 0 || ack->ranges[i].largest + 1 < ack->ranges[i - 1].smallest);
    }
}

static bool is_same_ack(const xl_ack_frame *a, const xl_ack_frame *b) {
    bool same = a->path_id == b->path_id && a->delay == b->delay && a->range_count == b->range_count &&
                a->has_qoe == b->has_qoe && (!a->has_qoe || is_same_qoe(&a->qoe, &b->qoe));
    for (size_t i = 0; same && i < a->range_count; i++)
        same = a->ranges[i].smallest == b->ranges[i].smallest && a->ranges[i].largest == b->ranges[i].largest;
    return same;
}

/* Writes the frame again. False: it has no writer, or its encoding is longer than its fields need. */
static bool put_again(xl_writer *w, const xl_frame *f, bool qoe_in_ack) {
    switch (f->type) {
    case XL_FRAME_PADDING:
    case XL_FRAME_ACK_ECN:
    case XL_FRAME_ACK_MP_ECN:
    case XL_FRAME_PATH_ACK_ECN:
    case XL_FRAME_NEW_TOKEN:
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        return false;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_PATH_ACK:
        return xl_frame_put_ack(w, f->ack.ranges, f->ack.range_count, f->ack.delay, f->type, f->ack.path_id,
                                f->type == XL_FRAME_ACK_MP && qoe_in_ack, f->ack.has_qoe ? &f->ack.qoe : NULL) > 0;
    case XL_FRAME_CRYPTO:
        xl_frame_put_crypto_header(w, f->crypto.offset, f->crypto.len);
        xl_write_bytes(w, f->crypto.data, f->crypto.len);
        return true;
    case XL_FRAME_STREAM: {
        uint8_t *from = w->p;
        xl_frame_put_stream_header(w, f->stream.stream_id, f->stream.offset, f->stream.len, f->stream.fin);
        FUZZ_CHECK(w->failed || f->stream.len > 16383 ||
                   (size_t)(w->p - from) <= xl_frame_stream_header_len(f->stream.stream_id, f->stream.offset));
        xl_write_bytes(w, f->stream.data, f->stream.len);
        return true;
    }
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        xl_frame_put_new_cid(w, f->type, f->new_cid.path_id, f->new_cid.sequence, f->new_cid.retire_prior_to,
                             &f->new_cid.cid, f->new_cid.reset_token);
        return true;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        xl_frame_put_path(w, f->type, f->path.data);
        return true;
    case XL_FRAME_DATAGRAM:
        xl_frame_put_datagram_header(w, f->datagram.len);
        xl_write_bytes(w, f->datagram.data, f->datagram.len);
        return true;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        xl_frame_put_qoe(w, f->qoe.path_id, f->qoe.has_qoe ? &f->qoe.qoe : NULL);
        return true;
    default:
        xl_frame_put_numbers(w, f->type, f->number);
        return true;
    }
}

static bool is_same(const xl_frame *a, const xl_frame *b) {
    if (a->type != b->type)
        return false;
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++)
        if (xl_frame_info_of(a->type)->numbers[i] && a->type != XL_FRAME_STREAM && a->number[i] != b->number[i])
            return false;
    switch (a->type) {
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_MP:
    case XL_FRAME_PATH_ACK:
        return is_same_ack(&a->ack, &b->ack);
    case XL_FRAME_CRYPTO:
        return is_same_bytes(a->crypto.data, a->crypto.len, b->crypto.data, b->crypto.len);
    case XL_FRAME_STREAM:
        return a->stream.stream_id == b->stream.stream_id && a->stream.offset == b->stream.offset &&
               a->stream.fin == b->stream.fin &&
               is_same_bytes(a->stream.data, a->stream.len, b->stream.data, b->stream.len);
    case XL_FRAME_DATAGRAM:
        return is_same_bytes(a->datagram.data, a->datagram.len, b->datagram.data, b->datagram.len) &&
               b->datagram.frame_bytes == xl_frame_datagram_header_len(b->datagram.len) + b->datagram.len;
    case XL_FRAME_NEW_CONNECTION_ID:
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        return xl_cid_equal(&a->new_cid.cid, &b->new_cid.cid) &&
               memcmp(a->new_cid.reset_token, b->new_cid.reset_token, 16) == 0;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        return memcmp(a->path.data, b->path.data, 8) == 0;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        return a->qoe.has_qoe == b->qoe.has_qoe && (!a->qoe.has_qoe || is_same_qoe(&a->qoe.qoe, &b->qoe.qoe));
    case XL_FRAME_PATH_STATUS_BACKUP:
    case XL_FRAME_PATH_STATUS_AVAILABLE:
        return a->path_status.status == b->path_status.status;
    default:
        return true;
    }
}

static void write_and_read(const xl_frame *f, bool qoe_in_ack) {
    static uint8_t room[ROOM + 65536];
    xl_writer w = xl_writer_of(room, sizeof room);
    xl_frame again;
    if (!put_again(&w, f, qoe_in_ack))
        return;
    FUZZ_CHECK(!w.failed);
    uint8_t *exact = fuzz_copy(room, (size_t)(w.p - room));
    xl_reader r = xl_reader_of(exact, (size_t)(w.p - room));
    FUZZ_CHECK(xl_frame_parse(&r, qoe_in_ack, &again) == 0);
    FUZZ_CHECK(xl_reader_left(&r) == 0 && is_same(f, &again));
    for (size_t cap = 0; cap < (size_t)(w.p - room) && cap < 64; cap++) { /* no writer writes beyond its room */
        uint8_t *small = malloc(cap > 0 ? cap : 1);
        xl_writer short_of_room = xl_writer_of(small, cap);
        put_again(&short_of_room, f, qoe_in_ack);
        free(small);
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    uint8_t flags = fuzz_u8(&in);
    bool qoe_in_ack = flags & 1;
    xl_packet_type type = (xl_packet_type)((flags >> 1) % (XL_PACKET_1RTT + 1));
    xl_reader r = xl_reader_of(in.p, fuzz_left(&in));
    fuzz_qlog log;
    fuzz_qlog_init(&log);
    xl_log sink = fuzz_qlog_log(&log);
    xl_qlog *qlog = xl_qlog_new(&sink, flags & 0x80, &(xl_cid){.len = 4}, 1000);
    xl_qlog_packet_begin(qlog, 2000, flags & 0x40, type, size, size, 0, flags);
    xl_frame f;
    while (xl_reader_left(&r) > 0 && xl_frame_parse(&r, qoe_in_ack, &f) == 0) {
        FUZZ_CHECK(!r.failed && xl_frame_info_of(f.type)->name);
        fuzz_note_number(f.type + 8u * !xl_frame_info_of(f.type)->is_silent +
                         4u * xl_frame_info_of(f.type)->is_probing +
                         2u * (xl_frame_info_of(f.type)->packets >> type & 1));
        if (f.type == XL_FRAME_ACK || f.type == XL_FRAME_ACK_ECN || f.type == XL_FRAME_ACK_MP ||
            f.type == XL_FRAME_ACK_MP_ECN || f.type == XL_FRAME_PATH_ACK || f.type == XL_FRAME_PATH_ACK_ECN)
            check_ack(&f.ack);
        write_and_read(&f, qoe_in_ack);
        xl_qlog_frame(qlog, &f);
    }
    xl_qlog_packet_end(qlog);
    xl_qlog_free(qlog);
    fuzz_qlog_free(&log);
    return 0;
}
