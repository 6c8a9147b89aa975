#include <stdlib.h>
#include <string.h>
#include "tests/unit.h"
#include "wire/frame.h"

static uint64_t seed;

static uint64_t next_random(void) {
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* A varint of any of the four lengths. */
static uint64_t random_varint(void) {
    static const unsigned bits[] = {6, 14, 30, 62};
    return next_random() >> (64 - bits[next_random() % 4]);
}

static const uint64_t simple_types[] = {
    XL_FRAME_PING,
    XL_FRAME_RESET_STREAM,
    XL_FRAME_STOP_SENDING,
    XL_FRAME_CRYPTO,
    XL_FRAME_NEW_TOKEN,
    XL_FRAME_STREAM,
    XL_FRAME_MAX_DATA,
    XL_FRAME_MAX_STREAM_DATA,
    XL_FRAME_MAX_STREAMS_BIDI,
    XL_FRAME_MAX_STREAMS_UNI,
    XL_FRAME_DATA_BLOCKED,
    XL_FRAME_STREAM_DATA_BLOCKED,
    XL_FRAME_STREAMS_BLOCKED_BIDI,
    XL_FRAME_STREAMS_BLOCKED_UNI,
    XL_FRAME_NEW_CONNECTION_ID,
    XL_FRAME_RETIRE_CONNECTION_ID,
    XL_FRAME_PATH_CHALLENGE,
    XL_FRAME_PATH_RESPONSE,
    XL_FRAME_CONNECTION_CLOSE,
    XL_FRAME_APPLICATION_CLOSE,
    XL_FRAME_HANDSHAKE_DONE,
    XL_FRAME_ACK,
    XL_FRAME_ACK_MP,
    XL_FRAME_QOE_CONTROL_SIGNALS,
    XL_FRAME_PATH_STATUS,
};
#define TYPE_COUNT (sizeof simple_types / sizeof simple_types[0])

static uint8_t payload[64] = "The quick brown fox jumps over the lazy dog, and over it again.";

static void invent_data(const uint8_t **data, size_t *len) {
    *data = payload;
    *len = next_random() % sizeof payload;
}

static void invent_ack(xl_ack_frame *ack, bool multipath) {
    ack->path_id = multipath ? random_varint() : 0;
    ack->delay = random_varint();
    ack->range_count = 1 + next_random() % XL_ACK_RANGES_MAX;
    uint64_t at = (UINT64_C(1) << 40) + random_varint() / 2;
    for (size_t i = 0; i < ack->range_count; i++) {
        uint64_t largest = at;
        uint64_t smallest = largest - next_random() % (i % 3 ? 4 : 100000);
        ack->ranges[i] = (xl_ack_range){smallest, largest};
        at = smallest - 2 - next_random() % (i % 5 ? 10 : 20000);
    }
    ack->has_qoe = multipath && next_random() % 2;
    ack->qoe = (xl_qoe){0};
    if (ack->has_qoe)
        ack->qoe = (xl_qoe){random_varint(), random_varint(), random_varint(), random_varint()};
}

/* A frame with random fields, as the parser should report it. */
static xl_frame invent(uint64_t type) {
    xl_frame f;
    memset(&f, 0, sizeof f);
    f.type = type;
    for (size_t i = 0; i < XL_FRAME_NUMBERS; i++)
        f.number[i] = xl_frame_info_of(type)->numbers[i] ? random_varint() : 0;
    switch (type) {
    case XL_FRAME_CRYPTO:
        f.crypto.offset /= 2;
        invent_data(&f.crypto.data, &f.crypto.len);
        break;
    case XL_FRAME_NEW_TOKEN:
        invent_data(&f.new_token.token, &f.new_token.len);
        f.new_token.len += f.new_token.len == 0;
        break;
    case XL_FRAME_STREAM:
        f.stream.stream_id = random_varint();
        f.stream.offset = next_random() % 4 ? random_varint() / 2 : 0;
        f.stream.fin = next_random() % 2;
        invent_data(&f.stream.data, &f.stream.len);
        break;
    case XL_FRAME_NEW_CONNECTION_ID:
        f.new_cid.retire_prior_to = f.new_cid.sequence / (1 + next_random() % 4);
        f.new_cid.cid.len = (uint8_t)(1 + next_random() % XL_MAX_CID_BYTES);
        memcpy(f.new_cid.cid.id, payload, f.new_cid.cid.len);
        f.new_cid.reset_token = payload + 20;
        break;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        f.path.data = payload + next_random() % 50;
        break;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        f.close.reason = payload + next_random() % sizeof payload;
        f.close.reason_len = strlen((const char *)f.close.reason);
        break;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_MP:
        invent_ack(&f.ack, type == XL_FRAME_ACK_MP);
        break;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        f.qoe.has_qoe = next_random() % 2;
        if (f.qoe.has_qoe)
            f.qoe.qoe = (xl_qoe){random_varint(), random_varint(), random_varint(), random_varint()};
        break;
    case XL_FRAME_PATH_STATUS:
        f.path_status.status = next_random() % 3;
        break;
    case XL_FRAME_MAX_STREAMS_BIDI:
    case XL_FRAME_MAX_STREAMS_UNI:
    case XL_FRAME_STREAMS_BLOCKED_BIDI:
    case XL_FRAME_STREAMS_BLOCKED_UNI:
        f.max.maximum >>= 2;
        break;
    default:
        break;
    }
    return f;
}

static void put(xl_writer *w, const xl_frame *f) {
    switch (f->type) {
    case XL_FRAME_CRYPTO:
        xl_frame_put_crypto_header(w, f->crypto.offset, f->crypto.len);
        xl_write_bytes(w, f->crypto.data, f->crypto.len);
        break;
    case XL_FRAME_NEW_TOKEN:
        xl_frame_put_new_token(w, f->new_token.token, f->new_token.len);
        break;
    case XL_FRAME_STREAM: {
        const uint8_t *start = w->p;
        xl_frame_put_stream_header(w, f->stream.stream_id, f->stream.offset, f->stream.len, f->stream.fin);
        assert_true((size_t)(w->p - start) <= xl_frame_stream_header_len(f->stream.stream_id, f->stream.offset));
        xl_write_bytes(w, f->stream.data, f->stream.len);
        break;
    }
    case XL_FRAME_NEW_CONNECTION_ID:
        xl_frame_put_new_cid(w, f->type, 0, f->new_cid.sequence, f->new_cid.retire_prior_to, &f->new_cid.cid,
                             f->new_cid.reset_token);
        break;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        xl_frame_put_path(w, f->type, f->path.data);
        break;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        xl_frame_put_close(w, f->type == XL_FRAME_APPLICATION_CLOSE, f->close.error_code, f->close.frame_type,
                           (const char *)f->close.reason);
        break;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_MP:
        assert_int_equal(xl_frame_put_ack(w, f->ack.ranges, f->ack.range_count, f->ack.delay, f->type, f->ack.path_id,
                                          true, f->ack.has_qoe ? &f->ack.qoe : NULL),
                         f->ack.range_count);
        break;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        xl_frame_put_qoe(w, f->qoe.path_id, f->qoe.has_qoe ? &f->qoe.qoe : NULL);
        break;
    default:
        xl_frame_put_numbers(w, f->type, f->number);
        break;
    }
}

static void assert_same_qoe(const xl_qoe *a, const xl_qoe *b) {
    assert_true(a->cached_bytes == b->cached_bytes && a->cached_frames == b->cached_frames);
    assert_true(a->bps == b->bps && a->fps == b->fps);
}

static void assert_same_data(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len) {
    assert_int_equal(a_len, b_len);
    if (a_len > 0)
        assert_memory_equal(a, b, a_len);
}

static void assert_same_ack(const xl_ack_frame *a, const xl_ack_frame *b) {
    assert_true(a->path_id == b->path_id && a->delay == b->delay);
    assert_int_equal(a->range_count, b->range_count);
    for (size_t i = 0; i < a->range_count; i++) {
        assert_true(a->ranges[i].smallest == b->ranges[i].smallest);
        assert_true(a->ranges[i].largest == b->ranges[i].largest);
    }
    assert_false(a->has_ecn);
    assert_int_equal(a->has_qoe, b->has_qoe);
    assert_same_qoe(&a->qoe, &b->qoe);
}

static void assert_same_frame(const xl_frame *a, const xl_frame *b) {
    assert_true(a->type == b->type);
    for (size_t i = 0; i < XL_FRAME_NUMBERS && !(a->type == XL_FRAME_STREAM || a->type == XL_FRAME_NEW_TOKEN); i++)
        if (xl_frame_info_of(a->type)->numbers[i])
            assert_true(a->number[i] == b->number[i]);
    switch (a->type) {
    case XL_FRAME_CRYPTO:
        assert_same_data(a->crypto.data, a->crypto.len, b->crypto.data, b->crypto.len);
        break;
    case XL_FRAME_NEW_TOKEN:
        assert_same_data(a->new_token.token, a->new_token.len, b->new_token.token, b->new_token.len);
        break;
    case XL_FRAME_STREAM:
        assert_true(a->stream.stream_id == b->stream.stream_id && a->stream.offset == b->stream.offset);
        assert_int_equal(a->stream.fin, b->stream.fin);
        assert_same_data(a->stream.data, a->stream.len, b->stream.data, b->stream.len);
        break;
    case XL_FRAME_NEW_CONNECTION_ID:
        assert_true(xl_cid_equal(&a->new_cid.cid, &b->new_cid.cid));
        assert_memory_equal(a->new_cid.reset_token, b->new_cid.reset_token, 16);
        break;
    case XL_FRAME_PATH_CHALLENGE:
    case XL_FRAME_PATH_RESPONSE:
        assert_memory_equal(a->path.data, b->path.data, 8);
        break;
    case XL_FRAME_CONNECTION_CLOSE:
    case XL_FRAME_APPLICATION_CLOSE:
        assert_same_data(a->close.reason, a->close.reason_len, b->close.reason, b->close.reason_len);
        break;
    case XL_FRAME_ACK:
    case XL_FRAME_ACK_MP:
        assert_same_ack(&a->ack, &b->ack);
        break;
    case XL_FRAME_QOE_CONTROL_SIGNALS:
        assert_true(a->qoe.has_qoe == b->qoe.has_qoe);
        assert_same_qoe(&a->qoe.qoe, &b->qoe.qoe);
        break;
    default:
        break;
    }
}

TEST(every_frame_round_trips) {
    seed = 2021;
    for (int round = 0; round < 20000; round++) {
        xl_frame in = invent(simple_types[(size_t)round % TYPE_COUNT]), out;
        uint8_t buf[2048];
        xl_writer w = xl_writer_of(buf, sizeof buf);
        put(&w, &in);
        assert_false(w.failed);
        xl_write_varint(&w, XL_FRAME_PING); /* what follows is not touched */
        xl_reader r = xl_reader_of(buf, (size_t)(w.p - buf));
        assert_int_equal(xl_frame_parse(&r, true, &out), 0);
        assert_same_frame(&out, &in);
        assert_int_equal(xl_reader_left(&r), 1);
    }
}

/* The copies have no spare byte, so that the sanitizer sees a read past the end. */
TEST(a_truncated_frame_is_never_accepted) {
    seed = 7;
    for (size_t round = 0; round < 20 * TYPE_COUNT; round++) {
        xl_frame in = invent(simple_types[round % TYPE_COUNT]), out;
        uint8_t buf[2048];
        xl_writer w = xl_writer_of(buf, sizeof buf);
        put(&w, &in);
        for (size_t n = 0; n < (size_t)(w.p - buf); n++) {
            uint8_t *copy = malloc(n + 1);
            memcpy(copy + 1, buf, n);
            xl_reader r = xl_reader_of(copy + 1, n);
            assert_int_equal(xl_frame_parse(&r, true, &out), XL_QERR_FRAME_ENCODING);
            free(copy);
        }
    }
}

TEST(a_writer_without_room_fails_and_stays_in_bounds) {
    seed = 8;
    for (size_t round = 0; round < 5 * TYPE_COUNT; round++) {
        xl_frame in = invent(simple_types[round % TYPE_COUNT]);
        if (in.type == XL_FRAME_ACK || in.type == XL_FRAME_ACK_MP)
            continue; /* writes as many ranges as fit: tested separately */
        if (in.type == XL_FRAME_CONNECTION_CLOSE || in.type == XL_FRAME_APPLICATION_CLOSE)
            in.close.reason = (const uint8_t *)""; /* is cut to the room: tested separately */
        uint8_t buf[2048];
        xl_writer w = xl_writer_of(buf, sizeof buf);
        put(&w, &in);
        size_t len = (size_t)(w.p - buf);
        for (size_t n = 0; n < len; n++) {
            uint8_t *room = malloc(n + 1);
            xl_writer tight = xl_writer_of(room + 1, n);
            put(&tight, &in);
            assert_true(tight.failed);
            free(room);
        }
    }
}

static uint64_t parse(const uint8_t *data, size_t n, xl_frame *out) {
    xl_reader r = xl_reader_of(data, n);
    return xl_frame_parse(&r, true, out);
}

#define PARSE(out, ...) parse((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), out)
#define MAX_VARINT      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

TEST(forbidden_values_are_frame_encoding_errors) {
    xl_frame f;
    assert_int_equal(PARSE(&f, 0x12, 0xd0, 0, 0, 0, 0, 0, 0, 0), 0);                      /* 2^60 streams */
    assert_int_equal(PARSE(&f, 0x12, 0xd0, 0, 0, 0, 0, 0, 0, 1), XL_QERR_FRAME_ENCODING); /* one more */
    assert_int_equal(PARSE(&f, 0x17, 0xd0, 0, 0, 0, 0, 0, 0, 1), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x10, MAX_VARINT), 0);
    assert_int_equal(PARSE(&f, 0x0e, 0, MAX_VARINT, 0), 0);
    assert_int_equal(PARSE(&f, 0x0e, 0, MAX_VARINT, 1, 'x'), XL_QERR_FRAME_ENCODING); /* ends beyond 2^62 - 1 */
    assert_int_equal(PARSE(&f, 0x0c, 0, MAX_VARINT, 'x'), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x06, MAX_VARINT, 1, 'x'), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x07, 0), XL_QERR_FRAME_ENCODING); /* empty token */
    uint8_t cid[1 + 1 + 1 + 1 + 21 + 16] = {0x18, 5, 2, 20};
    assert_int_equal(parse(cid, 4 + 20 + 16, &f), 0);
    cid[3] = 21;
    assert_int_equal(parse(cid, 4 + 21 + 16, &f), XL_QERR_FRAME_ENCODING);
    cid[3] = 0;
    assert_int_equal(parse(cid, 4 + 16, &f), XL_QERR_FRAME_ENCODING);
    cid[3] = 8;
    cid[2] = 6; /* retire_prior_to beyond its own sequence number */
    assert_int_equal(parse(cid, 4 + 8 + 16, &f), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x80, 0xba, 0xba, 0x03, 1, 1, 3, 0), XL_QERR_FRAME_ENCODING); /* unknown status */
}

TEST(unknown_types_and_longer_forms_of_types_are_errors) {
    xl_frame f;
    assert_int_equal(PARSE(&f, 0x20), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x32), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x40, 0xae), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x80, 0xba, 0xba, 0x04), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, MAX_VARINT), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, 0x01), 0);
    assert_int_equal(PARSE(&f, 0x40, 0x01), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(PARSE(&f, 0xc0, 0, 0, 0, 0, 0xba, 0xba, 0x03, 1, 1, 1, 0), XL_QERR_PROTOCOL_VIOLATION);
}

TEST(padding_is_one_frame_however_long) {
    uint8_t buf[1200] = {0};
    buf[1000] = XL_FRAME_PING;
    xl_reader r = xl_reader_of(buf, sizeof buf);
    xl_frame f;
    assert_int_equal(xl_frame_parse(&r, false, &f), 0);
    assert_int_equal(f.type, XL_FRAME_PADDING);
    assert_int_equal(xl_reader_left(&r), 200);
}

TEST(a_stream_frame_without_length_reaches_to_the_end) {
    xl_frame f;
    assert_int_equal(PARSE(&f, 0x0d, 4, 7, 'a', 'b', 'c'), 0);
    assert_int_equal(f.type, XL_FRAME_STREAM);
    assert_int_equal(f.stream.stream_id, 4);
    assert_int_equal(f.stream.offset, 7);
    assert_int_equal(f.stream.len, 3);
    assert_true(f.stream.fin);
}

TEST(a_close_reason_is_cut_between_characters_to_fit) {
    uint8_t buf[10];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_close(&w, true, 5, 0,
                       "abcde\xc3\xa9\xc3\xa9"); /* "abcdeéé": 7 bytes of room end inside no character */
    assert_false(w.failed);
    xl_frame f;
    assert_int_equal(parse(buf, (size_t)(w.p - buf), &f), 0);
    assert_int_equal(f.close.reason_len, 7);
    w = xl_writer_of(buf, 9);
    xl_frame_put_close(&w, true, 5, 0, "abcde\xc3\xa9\xc3\xa9");
    assert_int_equal(parse(buf, (size_t)(w.p - buf), &f), 0);
    assert_int_equal(f.close.reason_len, 5);
    w = xl_writer_of(buf, 4);
    xl_frame_put_close(&w, false, 5, 6, NULL);
    assert_false(w.failed);
}

TEST(datagrams_have_a_length_or_reach_to_the_end) {
    xl_frame f;
    assert_int_equal(PARSE(&f, 0x30, 7, 8, 9), 0);
    assert_true(f.type == XL_FRAME_DATAGRAM && f.datagram.len == 3 && f.datagram.data[2] == 9);
    assert_int_equal(f.datagram.frame_bytes, 4);
    assert_int_equal(PARSE(&f, 0x31, 2, 7, 8, 1), 0);
    assert_true(f.type == XL_FRAME_DATAGRAM && f.datagram.len == 2 && f.datagram.frame_bytes == 4);
    assert_int_equal(PARSE(&f, 0x30), 0);
    assert_int_equal(f.datagram.len, 0);
    assert_int_equal(PARSE(&f, 0x31, 3, 7, 8), XL_QERR_FRAME_ENCODING);
    uint8_t buf[400];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_datagram_header(&w, 300);
    assert_int_equal(w.p - buf, xl_frame_datagram_header_len(300));
    assert_int_equal(parse(buf, sizeof buf, &f), 0);
    assert_int_equal(f.datagram.len, 300);
}

TEST(frames_of_numbers_have_their_bytes) {
    static const struct {
        uint64_t type, number[XL_FRAME_NUMBERS];
        size_t len;
        uint8_t bytes[12];
    } rows[] = {
        {XL_FRAME_PING, {0}, 1, {0x01}},
        {XL_FRAME_RESET_STREAM, {4, 0x1234, 64}, 6, {0x04, 4, 0x52, 0x34, 0x40, 64}},
        {XL_FRAME_STOP_SENDING, {4, 5}, 3, {0x05, 4, 5}},
        {XL_FRAME_MAX_DATA, {0, 7}, 2, {0x10, 7}},
        {XL_FRAME_MAX_STREAM_DATA, {4, 7}, 3, {0x11, 4, 7}},
        {XL_FRAME_MAX_STREAMS_UNI, {0, 7}, 2, {0x13, 7}},
        {XL_FRAME_DATA_BLOCKED, {0, 7}, 2, {0x14, 7}},
        {XL_FRAME_STREAM_DATA_BLOCKED, {4, 7}, 3, {0x15, 4, 7}},
        {XL_FRAME_STREAMS_BLOCKED_BIDI, {0, 7}, 2, {0x16, 7}},
        {XL_FRAME_RETIRE_CONNECTION_ID, {0, 3}, 2, {0x19, 3}},
        {XL_FRAME_HANDSHAKE_DONE, {0}, 1, {0x1e}},
        {XL_FRAME_IMMEDIATE_ACK, {0}, 1, {0x1f}},
        {XL_FRAME_ACK_FREQUENCY, {7, 20, 40000, 3}, 9, {0x40, 0xaf, 7, 20, 0x80, 0, 0x9c, 0x40, 3}},
        {XL_FRAME_PATH_STATUS, {1, 64, XL_STATUS_STANDBY, 9}, 9, {0x80, 0xba, 0xba, 0x03, 1, 0x40, 0x40, 1, 9}},
        {XL_FRAME_PATH_ABANDON, {0x1234, 0x3e76}, 6, {0x7e, 0x75, 0x52, 0x34, 0x7e, 0x76}},
        {XL_FRAME_PATH_STATUS_BACKUP, {5, 9, XL_STATUS_STANDBY}, 4, {0x7e, 0x76, 5, 9}}, /* the type is the status */
        {XL_FRAME_PATH_STATUS_AVAILABLE, {5, 9, XL_STATUS_AVAILABLE}, 4, {0x7e, 0x77, 5, 9}},
        {XL_FRAME_PATH_RETIRE_CONNECTION_ID, {3, 1}, 4, {0x7e, 0x79, 3, 1}},
        {XL_FRAME_MAX_PATH_ID, {0, XL_PATH_ID_MAX}, 10, {0x7e, 0x7a, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}},
        {XL_FRAME_PATHS_BLOCKED, {0, 7}, 3, {0x7e, 0x7b, 7}},
        {XL_FRAME_PATH_CIDS_BLOCKED, {2, 4}, 4, {0x7e, 0x7c, 2, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t buf[64];
        xl_frame f;
        xl_writer w = xl_writer_of(buf, sizeof buf);
        xl_frame_put_numbers(&w, rows[i].type, rows[i].number);
        assert_int_equal(w.p - buf, rows[i].len);
        assert_memory_equal(buf, rows[i].bytes, rows[i].len);
        assert_int_equal(parse(buf, rows[i].len, &f), 0);
        assert_int_equal(f.type, rows[i].type);
        assert_memory_equal(f.number, rows[i].number, sizeof f.number);
        for (size_t cut = 1; cut < rows[i].len; cut++)
            assert_int_not_equal(parse(buf, cut, &f), 0);
    }
}

/* Of each type: the packets of RFC 9000 table 3, `s` if it elicits no acknowledgement, `p` if it is probing. */
TEST(types_have_the_traits_of_their_rfc) {
    static const struct {
        uint64_t first, last;
        const char *traits;
    } rows[] = {
        {0x00, 0x00, "IH01sp"},         {0x01, 0x01, "IH01__"},         {0x02, 0x03, "IH_1s_"},
        {0x04, 0x05, "__01__"},         {0x06, 0x06, "IH_1__"},         {0x07, 0x07, "___1__"},
        {0x08, 0x17, "__01__"},         {0x18, 0x18, "__01_p"},         {0x19, 0x19, "__01__"},
        {0x1a, 0x1a, "__01_p"},         {0x1b, 0x1b, "___1_p"},         {0x1c, 0x1c, "IH01s_"},
        {0x1d, 0x1d, "__01s_"},         {0x1e, 0x1f, "___1__"},         {0x20, 0x2f, "______"},
        {0x30, 0x31, "__01__"},         {0x32, 0x3d, "______"},         {0x3e, 0x3f, "___1s_"},
        {0x40, 0x40, "______"},         {0xaf, 0xaf, "___1__"},         {0x3e74, 0x3e74, "______"},
        {0x3e75, 0x3e77, "___1__"},     {0x3e78, 0x3e78, "___1_p"},     {0x3e79, 0x3e7c, "___1__"},
        {0x3e7d, 0x3e7d, "______"},     {0xbab9ff, 0xbab9ff, "______"}, {0xbaba00, 0xbaba01, "___1s_"},
        {0xbaba02, 0xbaba03, "___1__"}, {0xbaba04, 0xbaba04, "______"},
    };
    static const xl_packet_type packets[] = {XL_PACKET_INITIAL, XL_PACKET_HANDSHAKE, XL_PACKET_0RTT, XL_PACKET_1RTT};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint64_t type = rows[i].first; type <= rows[i].last; type++) {
            const xl_frame_info *info = xl_frame_info_of(type);
            unsigned allowed = 0;
            for (size_t p = 0; p < 4; p++)
                allowed |= (unsigned)(rows[i].traits[p] != '_') << packets[p];
            assert_int_equal(info->packets, allowed);
            assert_int_equal(info->is_silent, rows[i].traits[4] == 's');
            assert_int_equal(info->is_probing, rows[i].traits[5] == 'p');
            assert_int_equal(strcmp(info->name, "unknown") == 0, allowed == 0);
            assert_int_equal(xl_frame_is_ietf(type), allowed && ((type & ~1u) == 0x3e || type >> 8 == 0x3e));
        }
    assert_string_equal(xl_frame_info_of(XL_FRAME_ACK_MP_ECN)->name, "ack_mp");
    assert_string_equal(xl_frame_info_of(XL_FRAME_STREAM + 3)->name, "stream");
}

/* The guarantees for a parsed frame. */
static void check_promises(const xl_frame *f, const uint8_t *data, const uint8_t *end) {
    assert_string_not_equal(xl_frame_info_of(f->type)->name, "unknown");
    if (f->type == XL_FRAME_STREAM) {
        assert_true(f->stream.data >= data && f->stream.data + f->stream.len <= end);
        assert_true(f->stream.offset + f->stream.len <= XL_VARINT_MAX);
    } else if (f->type == XL_FRAME_CRYPTO) {
        assert_true(f->crypto.data >= data && f->crypto.data + f->crypto.len <= end);
    } else if (f->type == XL_FRAME_CONNECTION_CLOSE || f->type == XL_FRAME_APPLICATION_CLOSE) {
        assert_true(f->close.reason >= data && f->close.reason + f->close.reason_len <= end);
    } else if (f->type == XL_FRAME_NEW_CONNECTION_ID) {
        assert_true(f->new_cid.cid.len <= XL_MAX_CID_BYTES && f->new_cid.reset_token + 16 <= end);
    } else if (f->type == XL_FRAME_ACK || f->type == XL_FRAME_ACK_ECN || f->type == XL_FRAME_ACK_MP ||
               f->type == XL_FRAME_ACK_MP_ECN) {
        const xl_ack_frame *ack = &f->ack;
        assert_true(ack->range_count >= 1 && ack->range_count <= XL_ACK_RANGES_MAX);
        for (size_t i = 0; i < ack->range_count; i++) {
            assert_true(ack->ranges[i].smallest <= ack->ranges[i].largest && ack->ranges[i].largest <= XL_VARINT_MAX);
            assert_true(i == 0 || ack->ranges[i].largest + 1 < ack->ranges[i - 1].smallest);
        }
    }
}

TEST(random_payloads_never_lead_out_of_bounds) {
    seed = 99;
    size_t frames = 0, refused = 0;
    for (int i = 0; i < 100000; i++) {
        size_t len = next_random() % 100;
        uint8_t *data = malloc(len + 1);
        for (size_t k = 0; k < len; k++)
            data[k] = (uint8_t)(next_random() >> 40) & (i % 3 ? 0x1f : 0xff);
        if (len > 4 && i % 4 == 0)
            memcpy(data, (const uint8_t[]){0x80, 0xba, 0xba, (uint8_t)(i / 4 % 5)}, 4);
        xl_reader r = xl_reader_of(data, len);
        while (xl_reader_left(&r) > 0) {
            xl_frame f;
            size_t left = xl_reader_left(&r);
            uint64_t error = xl_frame_parse(&r, i % 2, &f);
            if (error != 0) {
                assert_true(error == XL_QERR_FRAME_ENCODING || error == XL_QERR_PROTOCOL_VIOLATION);
                refused++;
                break;
            }
            assert_true(xl_reader_left(&r) < left); /* it always moves on */
            check_promises(&f, data, data + len);
            frames++;
        }
        free(data);
    }
    assert_true(frames > 50000 && refused > 50000);
}

TEST_MAIN(NULL, NULL)
