#include "video/video.h"

#include <endian.h>
#include <string.h>

#include "base/numbers.h"

typedef unsigned __int128 wide;

/* floor((a * b + plus) / c). Uses 128 bits only if necessary, because their division is a function call. */
static wide scaled(uint64_t a, uint64_t b, uint64_t plus, uint64_t c) {
    uint64_t product;
    bool fits = !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, plus, &product);
    return fits ? product / c : ((wide)a * b + plus) / c;
}

/* Bytes per frame time = size_numerator / size_denominator. */
static uint64_t size_numerator(uint64_t bitrate_bps) {
    return bitrate_bps * 1000;
}

static uint64_t size_denominator(uint32_t fps_milli) {
    return UINT64_C(8) * fps_milli;
}

uint64_t video_default_first_frame(uint64_t bitrate_bps, uint32_t fps_milli) {
    if (fps_milli == 0)
        return 1;
    uint64_t bytes = (uint64_t)scaled(4, size_numerator(bitrate_bps), 0, size_denominator(fps_milli));
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
    return (uint64_t)scaled(x + 1, d, n - 1, n);
}

uint64_t video_frame_count(const video *v) {
    return v->bytes > v->first_frame_bytes ? video_frame_at(v, v->bytes - 1) + 1 : 1;
}

uint64_t video_frame_begin(const video *v, uint64_t i) {
    if (i == 0)
        return 0;
    wide begin =
        v->first_frame_bytes + scaled(i - 1, size_numerator(v->bitrate_bps), 0, size_denominator(v->fps_milli));
    return begin < v->bytes ? (uint64_t)begin : v->bytes;
}

uint64_t video_bytes_in(uint64_t bitrate_bps, uint64_t us) {
    wide bytes = scaled(us, bitrate_bps, 0, 8000000);
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

uint64_t video_us_for(uint64_t bitrate_bps, uint64_t bytes) {
    wide us = scaled(bytes, 8000000, bitrate_bps - 1, bitrate_bps);
    return us > UINT64_MAX ? UINT64_MAX : (uint64_t)us;
}

#define WORD_STEP       UINT64_C(0x9e3779b97f4a7c15)
#define BLOCK_STEP      UINT64_C(0xd1342543de82ef95)
#define BLOCK_WORDS     512
#define BLOCK_BYTES     (8 * BLOCK_WORDS)
#define CHECKED_AT_ONCE 2048 /* bytes */

/* SplitMix64's finaliser, a permutation. */
static inline uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Word w of block b is mixed((w + 1) * WORD_STEP) ^ mixed(b * BLOCK_STEP), little-endian. All blocks have different
 * second parts, so a range that was shifted or swapped, also by multiples of a block, differs in every word. The first
 * parts are the same in all blocks and computed once, in little-endian order. */
static uint64_t first_part[BLOCK_WORDS];

__attribute__((constructor)) static void make_first_parts(void) {
    for (uint64_t w = 0; w < BLOCK_WORDS; w++)
        first_part[w] = htole64(mixed((w + 1) * WORD_STEP));
}

static inline uint64_t second_part(uint64_t offset) {
    return htole64(mixed(offset / BLOCK_BYTES * BLOCK_STEP));
}

typedef uint64_t words_of_vector __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void fill_vector(uint8_t *buf, const uint64_t *first,
                                                              const words_of_vector *salt) {
    words_of_vector v;
    memcpy(&v, first, sizeof v);
    v ^= *salt;
    memcpy(buf, &v, sizeof v);
}

/* Writes `count` complete words of one block. */
static inline __attribute__((always_inline)) void fill_words(uint8_t *buf, const uint64_t *first, uint64_t second,
                                                             size_t count) {
    const words_of_vector salt = {second, second, second, second};
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (size_t k = i; k < i + 16; k += 4)
            fill_vector(buf + 8 * k, first + k, &salt);
    for (; i + 4 <= count; i += 4)
        fill_vector(buf + 8 * i, first + i, &salt);
    for (; i < count; i++) {
        uint64_t word = first[i] ^ second;
        memcpy(buf + 8 * i, &word, sizeof word);
    }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void fill_words_avx2(uint8_t *buf, const uint64_t *first, uint64_t second,
                                                            size_t count) {
    fill_words(buf, first, second, count);
}
#endif

static void fill(uint8_t *buf, const uint64_t *first, uint64_t second, size_t count) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        fill_words_avx2(buf, first, second, count);
        return;
    }
#endif
    fill_words(buf, first, second, count);
}

/* Writes at most `len` bytes, from `offset` to the end of its word. Returns their number. */
static size_t fill_tail(uint8_t *buf, size_t len, uint64_t offset) {
    size_t skip = offset % 8, n = 8 - skip < len ? 8 - skip : len;
    uint64_t word = first_part[offset / 8 % BLOCK_WORDS] ^ second_part(offset);
    memcpy(buf, (const uint8_t *)&word + skip, n);
    return n;
}

/* Writes complete words together, for speed, and the bytes before and after them separately. */
void video_synthetic_fill(uint8_t *buf, size_t len, uint64_t offset) {
    while (len > 0) {
        size_t w = offset / 8 % BLOCK_WORDS, words = BLOCK_WORDS - w < len / 8 ? BLOCK_WORDS - w : len / 8, n;
        if (offset % 8 == 0 && words > 0) {
            fill(buf, first_part + w, second_part(offset), words);
            n = 8 * words;
        } else {
            n = fill_tail(buf, len, offset);
        }
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
