#include <string.h>

#include "tests/unit.h"
#include "video/video.h"

static video make(uint64_t bytes, uint64_t bps, uint32_t fps_milli, uint64_t first) {
    video v;
    assert_true(video_init(&v, bytes, bps, fps_milli, first));
    return v;
}

TEST(frames_cover_the_video_without_gap_or_drift) {
    const uint32_t rates[] = {30000, 29970, 23976, 60000};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        video v = make(3000001, 2500000, rates[r], 70000);
        uint64_t count = video_frame_count(&v), previous = video_frame_begin(&v, 1);
        assert_int_equal(video_frame_begin(&v, 0), 0);
        assert_int_equal(previous, 70000);
        uint64_t least = UINT64_MAX, most = 0;
        for (uint64_t i = 2; i <= count; i++) {
            uint64_t begin = video_frame_begin(&v, i);
            assert_true(begin > previous);
            assert_int_equal(video_frame_at(&v, previous), i - 1);
            assert_int_equal(video_frame_at(&v, begin - 1), i - 1);
            if (i < count) {
                least = begin - previous < least ? begin - previous : least;
                most = begin - previous > most ? begin - previous : most;
            }
            previous = begin;
        }
        assert_int_equal(previous, v.bytes);
        assert_true(most - least <= 1);
        /* The k-th frame after the first begins k frame times after it, also for large k. */
        uint64_t k = 200;
        assert_int_equal(video_frame_begin(&v, k + 1) - 70000, k * 2500000 * 1000 / (8 * (uint64_t)rates[r]));
    }
}

TEST(first_frame_defaults_to_four_frames_and_fits_the_video) {
    video v = make(1000000, 2400000, 30000, 0);
    assert_int_equal(v.first_frame_bytes, 40000);
    v = make(5000, 2400000, 30000, 0);
    assert_int_equal(v.first_frame_bytes, 5000);
    assert_int_equal(video_frame_count(&v), 1);
    assert_int_equal(video_frame_begin(&v, 1), 5000);
    assert_int_equal(video_frame_at(&v, 5000), 1);
}

TEST(impossible_videos_are_refused) {
    video v;
    assert_false(video_init(&v, 0, 1000, 1000, 0));
    assert_false(video_init(&v, 10, 0, 1000, 0));
    assert_false(video_init(&v, 10, 1000, 0, 0));
    assert_false(video_init(&v, VIDEO_MAX_BYTES + 1, 1000000, 30000, 0));
    assert_false(video_init(&v, 10, 8, 30000, 0)); /* less than a byte per frame */
}

TEST(play_time_and_bytes_are_exact) {
    assert_int_equal(video_bytes_in(2500000, 1000000), 312500);
    assert_int_equal(video_us_for(7, 1), 1142858); /* 8 s / 7, rounded up */
    assert_int_equal(video_us_for(2500000, 312500), 1000000);
    assert_int_equal(video_bytes_in(3000000, 1), 0);
    assert_int_equal(video_us_for(3000000, 1), 3); /* 2.67 us, rounded up */
    for (uint64_t n = 0; n < 100000; n += 977) {
        uint64_t us = video_us_for(3333333, n);
        assert_true(video_bytes_in(3333333, us) >= n);
        assert_true(us == 0 || video_bytes_in(3333333, us - 1) < n);
    }
    assert_true(video_us_for(1, VIDEO_MAX_BYTES) == UINT64_MAX); /* saturates */
}

TEST(synthetic_bytes_depend_on_their_offset_only) {
    uint8_t whole[4096], part[512];
    video_synthetic_fill(whole, sizeof whole, 1000);
    for (size_t start = 0; start < 40; start++) {
        video_synthetic_fill(part, 300 + start, 1000 + start * 7);
        assert_memory_equal(part, whole + start * 7, 300 + start);
    }
    /* Existing files depend on these values, at the beginning and in the second block. */
    const uint8_t opening[8] = {0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2};
    video_synthetic_fill(part, 8, 0);
    assert_memory_equal(part, opening, 8);
    const uint8_t second[8] = {0x43, 0x20, 0x8f, 0x58, 0x7e, 0x7d, 0x73, 0x4f};
    video_synthetic_fill(part, 8, 4096);
    assert_memory_equal(part, second, 8);
}

/* Shifted by every distance up to two blocks, and by multiples of a block. */
TEST(a_shifted_range_is_found_at_once) {
    uint8_t buf[64];
    video_synthetic_fill(buf, sizeof buf, 8000);
    for (uint64_t by = 1; by < 8192; by++)
        assert_true(video_synthetic_check(buf, sizeof buf, 8000 + by) < 8);
    for (uint64_t blocks = 1; blocks < 100000; blocks++)
        assert_true(video_synthetic_check(buf, sizeof buf, 8000 + 4096 * blocks) < 8);
}

TEST(a_flipped_byte_is_found_where_it_is) {
    uint8_t buf[5000];
    video_synthetic_fill(buf, sizeof buf, 12345);
    assert_int_equal(video_synthetic_check(buf, sizeof buf, 12345), sizeof buf);
    for (size_t i = 0; i < sizeof buf; i++) {
        buf[i] ^= 0x40;
        assert_int_equal(video_synthetic_check(buf, sizeof buf, 12345), i);
        buf[i] ^= 0x40;
    }
    assert_int_not_equal(video_synthetic_check(buf, sizeof buf, 12346), sizeof buf);
}

TEST(synthetic_targets_are_parsed_strictly) {
    uint64_t n = 0;
    assert_true(video_synthetic_parse("/synthetic/20000000", 19, &n));
    assert_int_equal(n, 20000000);
    const char *bad[] = {"/synthetic/",
                         "/synthetic/0",
                         "/synthetic/-1",
                         "/synthetic/1x",
                         "/synthetic/999999999999999",
                         "/synthetic/99999999999999",
                         "/Synthetic/10",
                         "/synthetic/1/",
                         "synthetic/1",
                         ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(video_synthetic_parse(bad[i], strlen(bad[i]), &n));
}

TEST_MAIN(NULL, NULL)
