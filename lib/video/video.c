#include "video/video.h"

#include <endian.h>
#include <string.h>

#include "base/numbers.h"

typedef unsigned __int128 wide;

/* Bytes of one frame time as a fraction: size_numerator / size_denominator. */
static uint64_t size_numerator(uint64_t bitrate_bps) {
    return bitrate_bps * 1000;
}

static uint64_t size_denominator(uint32_t fps_milli) {
    return UINT64_C(8) * fps_milli;
}

uint64_t video_default_first_frame(uint64_t bitrate_bps, uint32_t fps_milli) {
    if (fps_milli == 0)
        return 1;
    uint64_t bytes = (uint64_t)((wide)4 * size_numerator(bitrate_bps) / size_denominator(fps_milli));
    return bytes > 0 ? bytes : 1;
}

bool video_init(video *v, uint64_t bytes, uint64_t bitrate_bps, uint32_t fps_milli, uint64_t first_frame_bytes) {
    if (bytes == 0 || bytes > VIDEO_MAX_BYTES || bitrate_bps == 0 || bitrate_bps > VIDEO_MAX_BITRATE_BPS ||
        fps_milli == 0 || fps_milli > VIDEO_MAX_FPS_MILLI || size_numerator(bitrate_bps) < size_denominator(fps_milli))
        return false;
    if (first_frame_bytes == 0)
        first_frame_bytes = video_default_first_frame(bitrate_bps, fps_milli);
    *v = (video){
        .bytes = bytes,
        .bitrate_bps = bitrate_bps,
        .fps_milli = fps_milli,
        .first_frame_bytes = first_frame_bytes < bytes ? first_frame_bytes : bytes,
    };
    return true;
}

uint64_t video_frame_at(const video *v, uint64_t offset) {
    if (offset >= v->bytes)
        return video_frame_count(v);
    if (offset < v->first_frame_bytes)
        return 0;
    /* The largest k with floor(k * n / d) <= x is ceil((x + 1) * d / n) - 1. */
    uint64_t x = offset - v->first_frame_bytes;
    uint64_t n = size_numerator(v->bitrate_bps), d = size_denominator(v->fps_milli);
    wide k = ((wide)(x + 1) * d + n - 1) / n - 1;
    return (uint64_t)k + 1;
}

uint64_t video_frame_count(const video *v) {
    return v->bytes > v->first_frame_bytes ? video_frame_at(v, v->bytes - 1) + 1 : 1;
}

uint64_t video_frame_begin(const video *v, uint64_t i) {
    if (i == 0)
        return 0;
    wide begin = v->first_frame_bytes + (wide)(i - 1) * size_numerator(v->bitrate_bps) / size_denominator(v->fps_milli);
    return begin < v->bytes ? (uint64_t)begin : v->bytes;
}

uint64_t video_bytes_in(uint64_t bitrate_bps, uint64_t us) {
    wide bytes = (wide)us * bitrate_bps / 8000000;
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

uint64_t video_us_for(uint64_t bitrate_bps, uint64_t bytes) {
    wide us = ((wide)bytes * 8000000 + bitrate_bps - 1) / bitrate_bps;
    return us > UINT64_MAX ? UINT64_MAX : (uint64_t)us;
}

#define WORD_STEP       UINT64_C(0x9e3779b97f4a7c15)
#define CHECKED_AT_ONCE 2048 /* bytes */

/* SplitMix64's finaliser. Word i of a video is mixed((i + 1) * WORD_STEP): bytes repeat with no period, so that a
 * shifted or swapped range shows. */
static inline uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The up to 8 bytes from `offset` to the end of its word, first byte lowest. Returns how many. */
static size_t word_tail(uint64_t offset, uint8_t out[8]) {
    unsigned skip = (unsigned)(offset % 8);
    uint64_t word = mixed((offset / 8 + 1) * WORD_STEP) >> (8 * skip);
    for (unsigned i = 0; i < 8 - skip; i++)
        out[i] = (uint8_t)(word >> (8 * i));
    return 8 - skip;
}

/* `count` whole words from that of `index`. */
static inline __attribute__((always_inline)) void fill_words(uint8_t *buf, uint64_t index, size_t count) {
    uint64_t z = (index + 1) * WORD_STEP;
    for (size_t i = 0; i < count; i++, z += WORD_STEP) {
        uint64_t word = htole64(mixed(z));
        memcpy(buf + 8 * i, &word, sizeof word);
    }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void fill_words_avx2(uint8_t *buf, uint64_t index, size_t count) {
    fill_words(buf, index, count);
}
#endif

static void fill(uint8_t *buf, uint64_t index, size_t count) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        fill_words_avx2(buf, index, count);
        return;
    }
#endif
    fill_words(buf, index, count);
}

/* What is not a whole word goes byte by byte, all between as words: this is a server's hot path. */
void video_synthetic_fill(uint8_t *buf, size_t len, uint64_t offset) {
    while (len > 0) {
        if (offset % 8 == 0 && len >= 8) {
            size_t words = len / 8;
            fill(buf, offset / 8, words);
            buf += 8 * words;
            len -= 8 * words;
            offset += 8 * words;
            continue;
        }
        uint8_t bytes[8];
        size_t n = word_tail(offset, bytes);
        n = n < len ? n : len;
        memcpy(buf, bytes, n);
        buf += n;
        offset += n;
        len -= n;
    }
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t len) {
    if (memcmp(a, b, len) == 0)
        return len;
    size_t i = 0;
    while (a[i] == b[i])
        i++;
    return i;
}

size_t video_synthetic_check(const uint8_t *buf, size_t len, uint64_t offset) {
    uint8_t expected[CHECKED_AT_ONCE];
    for (size_t done = 0; done < len;) {
        size_t n = len - done < sizeof expected ? len - done : sizeof expected;
        video_synthetic_fill(expected, n, offset + done);
        size_t good = first_difference(buf + done, expected, n);
        if (good < n)
            return done + good;
        done += n;
    }
    return len;
}

bool video_synthetic_parse(const char *target, size_t len, uint64_t *bytes) {
    static const char prefix[] = "/synthetic/";
    const size_t prefix_len = sizeof prefix - 1;
    if (len <= prefix_len || len > prefix_len + 14 || memcmp(target, prefix, prefix_len) != 0)
        return false;
    return number_parse(target + prefix_len, len - prefix_len, bytes) && *bytes >= 1 && *bytes <= VIDEO_MAX_BYTES;
}
