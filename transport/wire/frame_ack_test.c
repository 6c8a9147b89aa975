/* ACK and ACK_MP: byte vectors, range arithmetic, and how many ranges fit. */
#include <stdlib.h>
#include "tests/unit.h"
#include "wire/frame.h"

static uint64_t parse(const uint8_t *data, size_t n, bool qoe_in_ack, xl_frame *out) {
    xl_reader r = xl_reader_of(data, n);
    uint64_t error = xl_frame_parse(&r, qoe_in_ack, out);
    if (error == 0)
        assert_int_equal(xl_reader_left(&r), 0);
    return error;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define PARSE(out, qoe_field, ...)                                                                                     \
    parse((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), qoe_field, out)

static const xl_ack_range two_ranges[] = {{995, 1000}, {980, 990}};

static void assert_written(const xl_writer *w, const uint8_t *start, const uint8_t *expected, size_t n) {
    assert_false(w->failed);
    assert_int_equal(w->p - start, n);
    assert_memory_equal(start, expected, n);
}

TEST(ack_has_the_bytes_of_rfc9000_section_19_3) {
    uint8_t buf[64];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    assert_int_equal(xl_frame_put_ack(&w, two_ranges, 2, 100, XL_FRAME_ACK, 7, true, NULL), 2);
    /* type, largest 1000, delay 100, 1 further range, first range 5, gap 995 - 990 - 2 = 3, length 10 */
    assert_written(&w, buf, BYTES(0x02, 0x43, 0xe8, 0x40, 0x64, 0x01, 0x05, 0x03, 0x0a));
}

TEST(ack_mp_with_qoe_has_the_bytes_of_the_dialect) {
    static const uint8_t expected[] = {
        0x80, 0xba, 0xba, 0x00, /* type */
        0x03,                   /* path identifier */
        0x43, 0xe8,             /* largest acknowledged 1000 */
        0x40, 0x64,             /* delay 100 */
        0x01, 0x05, 0x03, 0x0a, /* one further range; 5; gap 3, 10 */
        0x0b,                   /* QoE control signal: 11 bytes */
        0x80, 0x0f, 0x42, 0x40, /* cached_bytes 1000000 */
        0x40, 0x78,             /* cached_frames 120 */
        0x80, 0x26, 0x25, 0xa0, /* bps 2500000 */
        0x1e,                   /* fps 30 */
    };
    const xl_qoe qoe = {.cached_bytes = 1000000, .cached_frames = 120, .bps = 2500000, .fps = 30};
    uint8_t buf[64];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    assert_int_equal(xl_frame_put_ack(&w, two_ranges, 2, 100, XL_FRAME_ACK_MP, 3, true, &qoe), 2);
    assert_written(&w, buf, expected, sizeof expected);

    xl_frame f;
    assert_int_equal(parse(expected, sizeof expected, true, &f), 0);
    assert_int_equal(f.type, XL_FRAME_ACK_MP);
    assert_int_equal(f.ack.path_id, 3);
    assert_int_equal(f.ack.delay, 100);
    assert_int_equal(f.ack.range_count, 2);
    assert_memory_equal(f.ack.ranges, two_ranges, sizeof two_ranges);
    assert_true(f.ack.has_qoe);
    assert_memory_equal(&f.ack.qoe, &qoe, sizeof qoe);
    assert_false(f.ack.has_ecn);
}

TEST(the_qoe_field_is_there_only_where_negotiated) {
    uint8_t buf[64];
    const xl_qoe qoe = {1, 2, 3, 4};
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_ack(&w, two_ranges, 1, 0, XL_FRAME_ACK_MP, 1, false, &qoe);
    assert_written(&w, buf, BYTES(0x80, 0xba, 0xba, 0x00, 0x01, 0x43, 0xe8, 0x00, 0x00, 0x05));
    w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_ack(&w, two_ranges, 1, 0, XL_FRAME_ACK_MP, 1, true, NULL); /* negotiated, nothing new */
    assert_written(&w, buf, BYTES(0x80, 0xba, 0xba, 0x00, 0x01, 0x43, 0xe8, 0x00, 0x00, 0x05, 0x00));

    xl_frame f;
    assert_int_equal(PARSE(&f, false, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0x00, 0x00, 0x05), 0);
    assert_false(f.ack.has_qoe);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0x00, 0x00, 0x05), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0x00, 0x00, 0x05, 0x00), 0);
    assert_false(f.ack.has_qoe);
    assert_int_equal(PARSE(&f, true, 0x02, 0x05, 0x00, 0x00, 0x05), 0); /* plain ACK never has one */
}

TEST(ecn_counts_stand_between_the_ranges_and_the_qoe_signal) {
    xl_frame f;
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x01, 0x02, 0x09, 0x00, 0x00, 0x01, 0x0a, 0x0b, 0x0c, 0x04, 0x01,
                           0x02, 0x03, 0x04),
                     0);
    assert_int_equal(f.type, XL_FRAME_ACK_MP_ECN);
    assert_true(f.ack.has_ecn && f.ack.ect0 == 10 && f.ack.ect1 == 11 && f.ack.ce == 12);
    assert_true(f.ack.has_qoe && f.ack.qoe.cached_bytes == 1 && f.ack.qoe.cached_frames == 2);
    assert_true(f.ack.qoe.bps == 3 && f.ack.qoe.fps == 4);
    assert_int_equal(PARSE(&f, false, 0x03, 0x09, 0x00, 0x00, 0x01, 0x0a, 0x0b, 0x0c), 0);
    assert_true(f.ack.has_ecn && f.ack.ce == 12 && f.ack.path_id == 0);
}

TEST(a_signal_that_is_not_four_varints_is_an_error_in_ack_mp_and_opaque_alone) {
    xl_frame f;
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0, 0, 0x05, 3, 1, 2, 3),
                     XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0, 0, 0x05, 5, 1, 2, 3, 4, 5),
                     XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x00, 0x01, 0x05, 0, 0, 0x05, 4, 1, 2, 3, 0x44),
                     XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x02, 0x01, 3, 1, 2, 3), 0);
    assert_int_equal(f.type, XL_FRAME_QOE_CONTROL_SIGNALS);
    assert_false(f.qoe.has_qoe);
    assert_int_equal(f.qoe.len, 3);
    assert_int_equal(PARSE(&f, true, 0x80, 0xba, 0xba, 0x02, 0x01, 4, 1, 2, 3, 4), 0);
    assert_true(f.qoe.has_qoe && f.qoe.path_id == 1 && f.qoe.qoe.fps == 4);
}

TEST(a_signal_alone_has_the_bytes_of_the_dialect) {
    uint8_t buf[64];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_qoe(&w, 2, &(xl_qoe){100, 20, 16384, 25});
    assert_written(&w, buf, BYTES(0x80, 0xba, 0xba, 0x02, 0x02, 0x08, 0x40, 0x64, 0x14, 0x80, 0x00, 0x40, 0x00, 0x19));
}

TEST(ranges_below_zero_are_refused) {
    xl_frame f;
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 0, 5), 0); /* 0..5 */
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 0, 6), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 1, 1, 2, 0), 0); /* 4..5, then 4 - 2 - 2 = 0..0 */
    assert_int_equal(f.ack.ranges[1].largest, 0);
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 1, 1, 2, 1), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 1, 1, 3, 0), XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0),
                     XL_QERR_FRAME_ENCODING);
    assert_int_equal(PARSE(&f, false, 0x02, 5, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0),
                     XL_QERR_FRAME_ENCODING); /* a count that no packet can hold */
}

/* Ranges that become longer and farther apart, so that every varint length occurs. */
static size_t many_ranges(xl_ack_range *ranges, size_t n) {
    uint64_t at = UINT64_C(1) << 50;
    for (size_t i = 0; i < n; i++) {
        uint64_t length = UINT64_C(1) << (i % 34), gap = UINT64_C(1) << (i * 7 % 34);
        ranges[i] = (xl_ack_range){at - length, at};
        at = at - length - gap - 2;
    }
    return n;
}

TEST(ranges_beyond_those_kept_are_still_checked) {
    uint8_t buf[1200];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_write_varint(&w, XL_FRAME_ACK);
    xl_write_varint(&w, 1000);
    xl_write_varint(&w, 0);
    xl_write_varint(&w, 200);
    xl_write_varint(&w, 0);
    for (int i = 0; i < 200; i++) { /* each goes 2 down: the last is 600 */
        xl_write_varint(&w, 0);
        xl_write_varint(&w, 0);
    }
    xl_frame f;
    assert_int_equal(parse(buf, (size_t)(w.p - buf), false, &f), 0);
    assert_int_equal(f.ack.range_count, XL_ACK_RANGES_MAX);
    assert_int_equal(f.ack.ranges[XL_ACK_RANGES_MAX - 1].largest, 1000 - 2 * (XL_ACK_RANGES_MAX - 1));
    buf[1] = 0x40; /* largest 232: underflows at range 116, long after the 64th */
    buf[2] = 232;
    assert_int_equal(parse(buf, (size_t)(w.p - buf), false, &f), XL_QERR_FRAME_ENCODING);
}

static size_t put_in(size_t room, const xl_ack_range *ranges, size_t n, bool as_mp, const xl_qoe *qoe, xl_frame *out) {
    uint8_t *buf = malloc(room + 1); /* exact: the sanitizer sees any excess */
    xl_writer w = xl_writer_of(buf + 1, room);
    size_t written = xl_frame_put_ack(&w, ranges, n, 12345, as_mp ? XL_FRAME_ACK_MP : XL_FRAME_ACK, 70, true, qoe);
    assert_false(w.failed);
    size_t len = (size_t)(w.p - buf) - 1;
    if (written == 0)
        assert_int_equal(len, 0);
    else
        assert_int_equal(parse(buf + 1, len, true, out), 0);
    free(buf);
    return written;
}

/* For every size of room: the frame parses, and one more range would not fit. */
TEST(as_many_ranges_are_written_as_fit) {
    const xl_qoe qoe = {1 << 20, 300, 4000000, 60};
    xl_ack_range ranges[100];
    size_t n = many_ranges(ranges, 100);
    size_t needed[101] = {0}; /* the exact size of the frame with k ranges */
    for (int mp = 0; mp < 2; mp++) {
        for (size_t k = 1; k <= n; k++) {
            uint8_t buf[2048];
            xl_writer w = xl_writer_of(buf, sizeof buf);
            assert_int_equal(
                xl_frame_put_ack(&w, ranges, k, 12345, mp ? XL_FRAME_ACK_MP : XL_FRAME_ACK, 70, true, &qoe), k);
            needed[k] = (size_t)(w.p - buf);
        }
        for (size_t room = 0; room <= needed[n] + 3; room++) {
            xl_frame f;
            size_t written = put_in(room, ranges, n, mp, &qoe, &f);
            assert_true(needed[written] <= room);
            assert_true(written == n || needed[written + 1] > room);
            if (written == 0)
                continue;
            assert_int_equal(f.ack.range_count, written < XL_ACK_RANGES_MAX ? written : XL_ACK_RANGES_MAX);
            assert_memory_equal(f.ack.ranges, ranges, f.ack.range_count * sizeof *ranges);
            assert_int_equal(f.ack.has_qoe, mp);
        }
    }
}

TEST(ranges_out_of_order_are_never_written) {
    const xl_ack_range adjacent[] = {{10, 20}, {5, 9}};
    const xl_ack_range rising[] = {{10, 20}, {30, 40}};
    const xl_ack_range reversed[] = {{20, 10}};
    xl_frame f;
    assert_int_equal(put_in(100, adjacent, 2, true, NULL, &f), 1);
    assert_int_equal(put_in(100, rising, 2, true, NULL, &f), 1);
    assert_int_equal(put_in(100, reversed, 1, true, NULL, &f), 0);
    assert_int_equal(put_in(100, adjacent, 0, true, NULL, &f), 0);
}

TEST_MAIN(NULL, NULL)
