/* Model of a video for player and server: size, play time, frames, and the content of synthetic videos.
 *
 * A video of N bytes plays N * 8 / bitrate seconds. Its first frame has first_frame_bytes, every later one
 * bitrate / 8 / fps bytes. Frame boundaries are rounded down to whole bytes, so sizes differ by at most one byte and
 * errors do not accumulate. Times are microseconds. All arithmetic is exact, in up to 128 bits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIDEO_MAX_BYTES       (UINT64_C(1) << 44)
#define VIDEO_MAX_BITRATE_BPS UINT64_C(1000000000000)
#define VIDEO_MAX_FPS_MILLI   UINT32_C(1000000)

typedef struct {
    uint64_t bytes;
    uint64_t bitrate_bps;       /* > 0 */
    uint32_t fps_milli;         /* frames per 1000 seconds, > 0 */
    uint64_t first_frame_bytes; /* > 0, <= bytes */
} video;

/* Fills in a video. first_frame_bytes 0: video_default_first_frame(). The first frame is at most the video. False: a
 * value is 0 or above its limit, or a frame time is less than a byte. */
bool video_init(video *, uint64_t bytes, uint64_t bitrate_bps, uint32_t fps_milli, uint64_t first_frame_bytes);
/* Returns the default size of the first frame: four frame times at the bit rate, at least 1 byte. */
uint64_t video_default_first_frame(uint64_t bitrate_bps, uint32_t fps_milli);

uint64_t video_frame_count(const video *);
/* Returns the offset of frame i; the video's size for i >= count. */
uint64_t video_frame_begin(const video *, uint64_t i);
/* Returns the index of the frame that contains byte `offset`; the count for offset >= bytes. */
uint64_t video_frame_at(const video *, uint64_t offset);

/* Bytes that play in `us`, rounded down; play time of `bytes` in µs, rounded up. */
uint64_t video_bytes_in(uint64_t bitrate_bps, uint64_t us);
uint64_t video_us_for(uint64_t bitrate_bps, uint64_t bytes);

/* Writes the content of /synthetic/<bytes> from `offset` on. Byte i depends on i only. */
void video_synthetic_fill(uint8_t *buf, size_t len, uint64_t offset);
/* Returns the index of the first wrong byte in buf; len: all are right. */
size_t video_synthetic_check(const uint8_t *buf, size_t len, uint64_t offset);

/* Parses "/synthetic/<bytes>", digits only, 1..VIDEO_MAX_BYTES. */
bool video_synthetic_parse(const char *target, size_t len, uint64_t *bytes);
