/* Frames of the dialect `ietf` that are more than numbers: the bytes of RFC 10069 section 4, and malformed frames. */

#include "tests/unit.h"
#include "wire/frame.h"

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const uint8_t token[16] = {0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void assert_writes(const xl_writer *w, const uint8_t *start, const uint8_t *expected, size_t len) {
    assert_false(w->failed);
    assert_int_equal(w->p - start, len);
    assert_memory_equal(start, expected, len);
}

/* Parses all of the data; no shorter piece of it is a frame. */
static xl_frame parsed(const uint8_t *data, size_t len) {
    xl_frame f;
    for (size_t cut = 1; cut < len; cut++) {
        xl_reader part = xl_reader_of(data, cut);
        assert_int_not_equal(xl_frame_parse(&part, true, &f), 0);
    }
    xl_reader r = xl_reader_of(data, len);
    assert_int_equal(xl_frame_parse(&r, true, &f), 0);
    assert_int_equal(xl_reader_left(&r), 0);
    return f;
}

TEST(path_ack_is_ack_with_a_path_id_and_never_with_qoe) {
    static const xl_ack_range ranges[] = {{995, 1000}, {980, 990}};
    const xl_qoe qoe = {1, 2, 3, 4};
    uint8_t buf[64];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    assert_int_equal(xl_frame_put_ack(&w, ranges, 2, 100, XL_FRAME_PATH_ACK, 3, true, &qoe), 2);
    assert_writes(&w, buf, BYTES(0x3e, 0x03, 0x43, 0xe8, 0x40, 0x64, 0x01, 0x05, 0x03, 0x0a));
    xl_frame f = parsed(buf, (size_t)(w.p - buf));
    assert_int_equal(f.type, XL_FRAME_PATH_ACK);
    assert_int_equal(f.ack.path_id, 3);
    assert_int_equal(f.ack.range_count, 2);
    assert_memory_equal(f.ack.ranges, ranges, sizeof ranges);
    assert_false(f.ack.has_qoe || f.ack.has_ecn);
}

TEST(path_ack_with_ecn_ends_in_three_counts) {
    static const uint8_t bytes[] = {0x3f, 0x07, 0x05, 0x00, 0x00, 0x05, 0x04, 0x02, 0x01};
    xl_frame f = parsed(bytes, sizeof bytes);
    assert_int_equal(f.ack.path_id, 7);
    assert_true(f.ack.has_ecn);
    assert_int_equal(f.ack.ect0, 4);
    assert_int_equal(f.ack.ect1, 2);
    assert_int_equal(f.ack.ce, 1);
}

TEST(path_new_connection_id_is_new_connection_id_after_a_path_id) {
    const xl_cid cid = {.len = 4, .id = {0xde, 0xad, 0xbe, 0xef}};
    uint8_t buf[64];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_frame_put_new_cid(&w, XL_FRAME_PATH_NEW_CONNECTION_ID, 6, 2, 1, &cid, token);
    assert_int_equal(w.p - buf, 10 + 16);
    assert_memory_equal(buf, ((const uint8_t[]){0x7e, 0x78, 0x06, 0x02, 0x01, 0x04, 0xde, 0xad, 0xbe, 0xef}), 10);
    xl_frame f = parsed(buf, 26);
    assert_int_equal(f.new_cid.path_id, 6);
    assert_int_equal(f.new_cid.sequence, 2);
    assert_int_equal(f.new_cid.retire_prior_to, 1);
    assert_true(xl_cid_equal(&f.new_cid.cid, &cid));
    assert_memory_equal(f.new_cid.reset_token, token, 16);
}

TEST(a_cid_of_no_or_21_bytes_or_retired_before_its_time_is_no_frame) {
    uint8_t bytes[64] = {0x7e, 0x78, 0x01, 0x00, 0x00, 0x00};
    xl_frame f;
    for (uint8_t len = 0; len <= 21; len += 21) {
        bytes[5] = len;
        xl_reader r = xl_reader_of(bytes, sizeof bytes);
        assert_int_equal(xl_frame_parse(&r, true, &f), XL_QERR_FRAME_ENCODING);
    }
    bytes[5] = 4;
    bytes[4] = 1; /* retire prior to 1, but it is number 0 */
    xl_reader r = xl_reader_of(bytes, sizeof bytes);
    assert_int_equal(xl_frame_parse(&r, true, &f), XL_QERR_FRAME_ENCODING);
}

TEST(code_points_of_drafts_are_not_spoken) {
    const uint64_t drafts[] = {0x15228c00, 0x15228c01, 0x15228c05, 0x15228c07, 0x15228c08,
                               0x15228c09, 0x15228c0a, 0x15228c0c, 0x15228c0d, 0x15228c0e};
    for (size_t i = 0; i < sizeof drafts / sizeof drafts[0]; i++) {
        uint8_t bytes[64] = {0};
        xl_frame f;
        xl_writer w = xl_writer_of(bytes, sizeof bytes);
        xl_write_varint(&w, drafts[i]);
        xl_reader r = xl_reader_of(bytes, sizeof bytes);
        assert_int_equal(xl_frame_parse(&r, true, &f), XL_QERR_FRAME_ENCODING);
    }
}

TEST_MAIN(NULL, NULL)
