/* The model of a video that player and server share: sizes, play time, frames, and the content of synthetic ones.
 *
 * A video of N bytes plays N * 8 / bitrate seconds. Its first frame has first_frame_bytes, all later ones the size of
 * one frame time at the bit rate (boundaries are rounded down to whole bytes, so that sizes differ by one byte at most
 * and nothing drifts). Times are microseconds, all arithmetic is exact in 128 bits. */
#ifndef VIDEO_VIDEO_H
#define VIDEO_VIDEO_H

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

/* Fills in a video; first_frame_bytes 0 = four frames' worth. Clamps the first frame to the size. False when a value is
 * zero or beyond the limits above. */
bool video_init(video *, uint64_t bytes, uint64_t bitrate_bps, uint32_t fps_milli, uint64_t first_frame_bytes);
/* Default size of the first frame: four frame times at the bit rate, at least 1. */
uint64_t video_default_first_frame(uint64_t bitrate_bps, uint32_t fps_milli);

uint64_t video_frame_count(const video *);
/* First byte of frame i; the end of the video for i >= count. */
uint64_t video_frame_begin(const video *, uint64_t i);
/* Index of the frame that holds byte `offset`; the count for offset >= bytes. */
uint64_t video_frame_at(const video *, uint64_t offset);

/* Bytes that play in `us`, rounded down; time that `bytes` play, rounded up: the first moment when all are consumed. */
uint64_t video_bytes_in(uint64_t bitrate_bps, uint64_t us);
uint64_t video_us_for(uint64_t bitrate_bps, uint64_t bytes);

/* Content of /synthetic/<bytes>: byte i is a fixed function of i alone. */
void video_synthetic_fill(uint8_t *buf, size_t len, uint64_t offset);
/* Index of the first byte in buf that is not as it must be; len when all are right. */
size_t video_synthetic_check(const uint8_t *buf, size_t len, uint64_t offset);

/* Parses "/synthetic/<bytes>", digits only, 1..VIDEO_MAX_BYTES. */
bool video_synthetic_parse(const char *target, size_t len, uint64_t *bytes);

#endif
