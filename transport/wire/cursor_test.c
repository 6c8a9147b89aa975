#include "tests/unit.h"
#include "wire/cursor.h"

static uint64_t decode(const uint8_t *bytes, size_t n) {
    xl_reader r = xl_reader_of(bytes, n);
    uint64_t v = xl_read_varint(&r);
    assert_false(r.failed);
    assert_int_equal(xl_reader_left(&r), 0);
    return v;
}

TEST(varints_decode_as_in_rfc9000_appendix_a1) {
    const uint8_t eight[] = {0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c};
    const uint8_t four[] = {0x9d, 0x7f, 0x3e, 0x7d};
    const uint8_t two[] = {0x7b, 0xbd};
    const uint8_t one[] = {0x25};
    const uint8_t padded[] = {0x40, 0x25};
    assert_true(decode(eight, sizeof eight) == UINT64_C(151288809941952652));
    assert_int_equal(decode(four, sizeof four), 494878333);
    assert_int_equal(decode(two, sizeof two), 15293);
    assert_int_equal(decode(one, sizeof one), 37);
    assert_int_equal(decode(padded, sizeof padded), 37);
}

TEST(varints_are_written_in_the_shortest_form) {
    static const struct {
        uint64_t v;
        size_t len;
        uint8_t bytes[8];
    } cases[] = {
        {0, 1, {0x00}},
        {37, 1, {0x25}},
        {63, 1, {0x3f}},
        {64, 2, {0x40, 0x40}},
        {15293, 2, {0x7b, 0xbd}},
        {16383, 2, {0x7f, 0xff}},
        {16384, 4, {0x80, 0x00, 0x40, 0x00}},
        {494878333, 4, {0x9d, 0x7f, 0x3e, 0x7d}},
        {(1 << 30) - 1, 4, {0xbf, 0xff, 0xff, 0xff}},
        {1 << 30, 8, {0xc0, 0, 0, 0, 0x40, 0, 0, 0}},
        {UINT64_C(151288809941952652), 8, {0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}},
        {XL_VARINT_MAX, 8, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t buf[8];
        xl_writer w = xl_writer_of(buf, sizeof buf);
        xl_write_varint(&w, cases[i].v);
        assert_false(w.failed);
        assert_int_equal(w.p - buf, cases[i].len);
        assert_int_equal(xl_varint_len(cases[i].v), cases[i].len);
        assert_memory_equal(buf, cases[i].bytes, cases[i].len);
        assert_true(decode(buf, cases[i].len) == cases[i].v);
        /* One byte too few: nothing is written beyond the end. */
        xl_writer tight = xl_writer_of(buf, cases[i].len - 1);
        xl_write_varint(&tight, cases[i].v);
        assert_true(tight.failed);
    }
}

TEST(values_beyond_62_bits_and_beyond_two_bytes_fail) {
    uint8_t buf[16];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_write_varint(&w, XL_VARINT_MAX + 1);
    assert_true(w.failed);
    w = xl_writer_of(buf, sizeof buf);
    xl_write_varint2(&w, 16384);
    assert_true(w.failed);
    w = xl_writer_of(buf, sizeof buf);
    xl_write_varint2(&w, 5);
    assert_false(w.failed);
    assert_int_equal(w.p - buf, 2);
    assert_int_equal(decode(buf, 2), 5);
}

TEST(fixed_width_integers_are_big_endian) {
    uint8_t buf[7];
    xl_writer w = xl_writer_of(buf, sizeof buf);
    xl_write_u8(&w, 0x01);
    xl_write_u16(&w, 0x0203);
    xl_write_u32(&w, 0x04050607);
    assert_false(w.failed);
    assert_int_equal(xl_writer_left(&w), 0);
    assert_memory_equal(buf, "\1\2\3\4\5\6\7", 7);
    xl_reader r = xl_reader_of(buf, sizeof buf);
    assert_int_equal(xl_read_u8(&r), 0x01);
    assert_int_equal(xl_read_u32(&r), 0x02030405);
    assert_int_equal(xl_reader_left(&r), 2);
    assert_false(r.failed);
}

TEST(a_failed_reader_stays_failed_and_moves_no_further) {
    const uint8_t data[] = {0xc0, 1, 2};
    xl_reader r = xl_reader_of(data, sizeof data);
    assert_int_equal(xl_read_varint(&r), 0);
    assert_true(r.failed);
    assert_int_equal(xl_read_u8(&r), 0);
    assert_null(xl_read_bytes(&r, 0));
    assert_int_equal(xl_reader_left(&r), 0);
    xl_reader empty = xl_reader_of(NULL, 0);
    assert_non_null(xl_read_bytes(&empty, 0));
    assert_int_equal(xl_read_varint(&empty), 0);
    assert_true(empty.failed);
}

TEST(a_failed_writer_writes_nothing_more) {
    uint8_t buf[4] = {9, 9, 9, 9};
    xl_writer w = xl_writer_of(buf, 3);
    xl_write_u32(&w, 0);
    assert_true(w.failed);
    xl_write_u8(&w, 0);
    xl_write_bytes(&w, buf, 1);
    assert_memory_equal(buf, "\x09\x09\x09\x09", 4);
}

TEST_MAIN(NULL, NULL)
