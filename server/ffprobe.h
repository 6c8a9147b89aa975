/* The end of a file's first video frame, from the output of ffprobe on its packets:
 *
 *     ffprobe -v error -select_streams v:0 -show_packets -of json video.mp4     (or -of csv=nk=0, or -of compact)
 *
 * "packets" with "pos", "size" and, if there, "codec_type" and "flags"; or that of -show_frames:
 * "frames" with "pkt_pos", "pkt_size" and "media_type". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *end: one past the last byte of the first frame of the first video stream. A player needs bytes [0, *end) of the
 * file, with headers and interleaved packets, to show it. False: error has a phrase with the line or the packet. */
bool ffprobe_first_frame(const char *text, size_t len, uint64_t *end, char *error, size_t error_cap);
