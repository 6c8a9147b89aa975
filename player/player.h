/* Model of a constant-bit-rate video player, sans-IO: when it requests which bytes, and what the viewer sees.
 *
 * The player requests the chunks of a video in sequence, up to `concurrency` at a time. It starts to play when enough
 * is buffered, consumes bytes at the bit rate, stalls when the next byte is missing, and resumes at the re-buffer
 * target. All times are microseconds on the caller's clock, passed as `now`, which never goes backwards. Events between
 * two calls have exact times: a stall starts when the last buffered byte is consumed, not at the next call.
 *
 *     player_connected() when the transport is ready, then
 *     at each event of the transport and at player_next_timeout():
 *         player_data(), player_done()           for received bytes
 *         player_step(now)
 *         while (player_wants(p, now, …))        hand the request to the transport, then player_requested()
 *     until player_over() */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "video/video.h"
#include "xlink/xlink.h"

#define PLAYER_MAX_CHUNKS      UINT64_C(1000000)
#define PLAYER_MAX_VIDEOS      UINT64_C(1000)
#define PLAYER_MAX_CONCURRENCY 64
#define PLAYER_MESSAGE_BYTES   192

/* The programs' defaults. */
#define PLAYER_REBUFFER_TARGET_US 500000
#define PLAYER_MAX_BUFFER_US      10000000
#define PLAYER_REPORT_INTERVAL_US 100000

typedef struct {
    video video;
    uint64_t play_bytes; /* plays the video up to this byte; 0: all of it */
    uint64_t chunk_bytes;
    unsigned concurrency;
    uint64_t startup_buffer_us;  /* play time to buffer before the start, in addition to the complete first frame */
    uint64_t rebuffer_target_us; /* play time to buffer before going on after a stall */
    uint64_t max_buffer_us;      /* no further request while this much play time is buffered or requested */
    uint64_t time_limit_us;      /* from the start */
    uint64_t report_interval_us; /* between PLAYER_EVENT_BUFFER */
    bool verify;                 /* compare every byte with the synthetic video of video/video.h */
    uint64_t videos; /* number of equal videos, played one after the other over the same transport; 0 is 1 */
} player_config;

typedef enum {
    PLAYER_RUNNING,
    PLAYER_COMPLETE,        /* played to the end */
    PLAYER_TIME_LIMIT,      /* the time limit ended it */
    PLAYER_CONNECT_FAILED,  /* not connected before the time limit, or failed to connect */
    PLAYER_CONNECTION_LOST, /* the connection died */
    PLAYER_ERROR,           /* refused request, wrong bytes, failed --save */
    PLAYER_INTERRUPTED,     /* by a signal */
} player_outcome;

typedef enum {
    PLAYER_EVENT_HANDSHAKE_DONE,
    PLAYER_EVENT_REQUEST,
    PLAYER_EVENT_FIRST_BYTE,
    PLAYER_EVENT_CHUNK_DONE,
    PLAYER_EVENT_VIDEO, /* the viewer switched to the next video */
    PLAYER_EVENT_FIRST_FRAME,
    PLAYER_EVENT_PLAY,        /* a video starts to play; once per video */
    PLAYER_EVENT_STALL_START, /* a stall that lasts to the end of the run counts, without a STALL_END */
    PLAYER_EVENT_STALL_END,
    PLAYER_EVENT_BUFFER,
    PLAYER_EVENT_ERROR,
    PLAYER_EVENT_END,
} player_event_type;

typedef struct {
    player_event_type type;
    uint64_t at;             /* when, on the caller's clock */
    uint64_t chunk;          /* REQUEST, FIRST_BYTE, CHUNK_DONE */
    uint64_t first, last;    /* REQUEST: byte range of the video, inclusive */
    uint64_t video;          /* VIDEO: its number, from 0 */
    uint64_t bytes;          /* CHUNK_DONE */
    uint64_t requested_at;   /* CHUNK_DONE: when the player decided to request it */
    uint64_t duration_us;    /* CHUNK_DONE: RCT; FIRST_FRAME: latency; STALL_END: length of the stall */
    uint64_t buffered_bytes; /* BUFFER: received in order and not yet played … */
    uint64_t buffered_us;    /* … and their play time */
    uint64_t left_us;        /* BUFFER: play-time left by the QoE signal: min(by frames, by bytes) */
    uint64_t played_us;      /* BUFFER: play time so far, of all videos */
    uint64_t received_bytes; /* BUFFER: all bytes received, in order or not */
    const char *message;     /* ERROR */
} player_event;

typedef void player_sink(void *user, const player_event *);

typedef struct player player;

/* Sets `video` and, if duration_us > 0, `play_bytes`. Returns player_config_problem(), or what is wrong with the
 * video. */
const char *player_config_video(player_config *, uint64_t bytes, uint64_t bitrate_bps, uint64_t fps_milli,
                                uint64_t first_frame_bytes, uint64_t duration_us);
/* Returns NULL, or a phrase that says what is wrong with the configuration. */
const char *player_config_problem(const player_config *);
/* Returns NULL without memory, or if the configuration has a problem. The functions below call the sink; event times
 * never decrease. */
player *player_new(const player_config *, player_sink *, void *user, uint64_t now);
void player_free(player *);

void player_connected(player *, uint64_t now);
/* Takes bytes of a chunk, in order; offset is relative to the chunk's first byte. */
void player_data(player *, uint64_t chunk, uint64_t offset, const uint8_t *data, size_t len, uint64_t now);
/* Returns the offset of a chunk in its video. */
uint64_t player_chunk_first(const player *, uint64_t chunk);
/* The response to this chunk has ended. */
void player_done(player *, uint64_t chunk, uint64_t now);
/* Ends the run, unless it is over. message may be NULL. */
void player_fail(player *, player_outcome, const char *message, uint64_t now);
/* Advances the state to `now`. */
void player_step(player *, uint64_t now);

/* Whether a request is to be made now. The first call that returns true sets the chunk's request time; the decision
 * stays until player_requested(). */
bool player_wants(player *, uint64_t now, uint64_t *chunk, uint64_t *first, uint64_t *last);
void player_requested(player *, uint64_t now);

/* The latest time for the next call of player_step() and player_wants(); XL_NEVER: over. */
uint64_t player_next_timeout(const player *);
bool player_over(const player *);
/* Writes the QoE signal at `now`, which must not be before the last call's. cached_frames: complete frames of which no
 * byte was played yet, plus the rest of a complete first frame, in frames of the usual duration. */
void player_qoe(const player *, uint64_t now, xl_qoe *out);

typedef struct {
    player_outcome outcome;
    const char *message;                                      /* "" for none; lives as long as the player */
    uint64_t chunks, bytes;                                   /* complete chunks; all bytes received */
    double rct_median_us, rct_p95_us, rct_p99_us, rct_max_us; /* interpolated linearly; 0: no complete chunk */
    bool connected, first_frame;                              /* whether each happened */
    uint64_t handshake_us, first_frame_us;                    /* from the start */
    uint64_t play_time_us;                                    /* time during which the video played */
    uint64_t rebuffer_time_us;                                /* total length of stalls, including one at the end */
    uint64_t rebuffer_count;
} player_summary;

/* For a run that has ended. */
void player_summarise(const player *, player_summary *);
const char *player_outcome_name(player_outcome);
