/* The constant-bit-rate video player, sans-IO: what to request when, and what the viewer sees meanwhile.
 *
 * The player requests the chunks of one video in sequence, up to `concurrency` at a time, starts when enough is
 * buffered, consumes at the bit rate, stalls when the next byte is not there, and goes on when the re-buffer target is
 * reached. All times are microseconds on the caller's clock, passed as `now`, which never goes backwards. What happens
 * between two calls is dated exactly: a stall starts when the last buffered byte is consumed, not when somebody looks.
 *
 *     player_connected() when the transport is ready, then
 *     whenever something happened or player_next_timeout() has come:
 *         player_data(), player_done()           as bytes come in
 *         player_step(now)
 *         while (player_wants(p, now, …))        hand the request to the transport, then player_requested()
 *     until player_over() */
#ifndef PLAYER_PLAYER_H
#define PLAYER_PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "video/video.h"
#include "xlink/xlink.h"

#define PLAYER_MAX_CHUNKS      UINT64_C(1000000)
#define PLAYER_MAX_VIDEOS      UINT64_C(1000)
#define PLAYER_MAX_CONCURRENCY 64
#define PLAYER_MESSAGE_BYTES   192

/* What the programs take where nothing else is asked for. */
#define PLAYER_REBUFFER_TARGET_US 500000
#define PLAYER_MAX_BUFFER_US      10000000
#define PLAYER_REPORT_INTERVAL_US 100000

typedef struct {
    video video;
    uint64_t play_bytes; /* plays the video up to this byte; 0: all of it */
    uint64_t chunk_bytes;
    unsigned concurrency;
    uint64_t startup_buffer_us;  /* play time to buffer before the start, beside the whole first frame */
    uint64_t rebuffer_target_us; /* play time to buffer before going on after a stall */
    uint64_t max_buffer_us;      /* no further request while this much is buffered or on its way */
    uint64_t time_limit_us;      /* from the start */
    uint64_t report_interval_us; /* between PLAYER_EVENT_BUFFER */
    bool verify;                 /* every byte must be as video/video.h says for synthetic videos */
    uint64_t videos;             /* so many like this one, one after the other over the same transport; 0 is 1 */
} player_config;

typedef enum {
    PLAYER_RUNNING,
    PLAYER_COMPLETE,        /* played to the end */
    PLAYER_TIME_LIMIT,      /* the time limit ended it */
    PLAYER_CONNECT_FAILED,  /* never connected, by the time limit or before */
    PLAYER_CONNECTION_LOST, /* the connection died */
    PLAYER_ERROR,           /* refused request, wrong bytes */
    PLAYER_INTERRUPTED,     /* by the user */
} player_outcome;

typedef enum {
    PLAYER_EVENT_HANDSHAKE_DONE,
    PLAYER_EVENT_REQUEST,
    PLAYER_EVENT_FIRST_BYTE,
    PLAYER_EVENT_CHUNK_DONE,
    PLAYER_EVENT_VIDEO, /* the viewer went on to the next video */
    PLAYER_EVENT_FIRST_FRAME,
    PLAYER_EVENT_PLAY,        /* the play of a video starts; once */
    PLAYER_EVENT_STALL_START, /* a stall that lasts to the end of the run has no STALL_END but counts */
    PLAYER_EVENT_STALL_END,
    PLAYER_EVENT_BUFFER,
    PLAYER_EVENT_ERROR,
    PLAYER_EVENT_END,
} player_event_type;

typedef struct {
    player_event_type type;
    uint64_t at;             /* when, on the caller's clock */
    uint64_t chunk;          /* REQUEST, FIRST_BYTE, CHUNK_DONE */
    uint64_t first, last;    /* REQUEST: bytes of the video, inclusive */
    uint64_t video;          /* VIDEO: its number, from 0 */
    uint64_t bytes;          /* CHUNK_DONE */
    uint64_t requested_at;   /* CHUNK_DONE: when the player decided to request it */
    uint64_t duration_us;    /* CHUNK_DONE: RCT; FIRST_FRAME: latency; STALL_END: of the stall */
    uint64_t buffered_bytes; /* BUFFER: received in order and not yet played … */
    uint64_t buffered_us;    /* … and the play time of that */
    uint64_t left_us;        /* play-time left as the QoE signal tells it: the smaller of frames and bytes */
    uint64_t played_us;      /* BUFFER: play position */
    uint64_t received_bytes; /* BUFFER: all that came, in order or not */
    const char *message;     /* ERROR */
} player_event;

typedef void player_sink(void *user, const player_event *);

typedef struct player player;

/* Fills in the video and, if duration_us > 0, how much of it is played. Else as player_config_problem(). */
const char *player_config_video(player_config *, uint64_t bytes, uint64_t bitrate_bps, uint64_t fps_milli,
                                uint64_t first_frame_bytes, uint64_t duration_us);
/* NULL when the configuration can work, else a phrase that says what is wrong with it. */
const char *player_config_problem(const player_config *);
/* NULL when memory is short or the configuration has a problem. The sink is called from within the functions below;
 * event times never decrease. */
player *player_new(const player_config *, player_sink *, void *user, uint64_t now);
void player_free(player *);

void player_connected(player *, uint64_t now);
/* Bytes of a chunk, in order; offset counts from the chunk's first byte. */
void player_data(player *, uint64_t chunk, uint64_t offset, const uint8_t *data, size_t len, uint64_t now);
/* Where in its video a chunk begins. */
uint64_t player_chunk_first(const player *, uint64_t chunk);
/* The response to this chunk has ended. */
void player_done(player *, uint64_t chunk, uint64_t now);
/* Ends the run. message may be NULL. No effect when it is over already. */
void player_fail(player *, player_outcome, const char *message, uint64_t now);
/* Brings the state up to now. */
void player_step(player *, uint64_t now);

/* Is there a request to make now? The decision is dated the first time this says so; it stays until player_requested().
 */
bool player_wants(player *, uint64_t now, uint64_t *chunk, uint64_t *first, uint64_t *last);
void player_requested(player *, uint64_t now);

/* When to call player_step() and player_wants() at the latest; XL_NEVER when over. */
uint64_t player_next_timeout(const player *);
bool player_over(const player *);
/* State for the QoE signal as of `now`, which must not be before the last call's. cached_frames: complete frames of
 * which no byte was played yet, and, in frames of the usual duration, what is left to play of the first one. */
void player_qoe(const player *, uint64_t now, xl_qoe *out);

typedef struct {
    player_outcome outcome;
    const char *message;                                      /* "" for none; lives as long as the player */
    uint64_t chunks, bytes;                                   /* complete chunks; all bytes received */
    double rct_median_us, rct_p95_us, rct_p99_us, rct_max_us; /* linear interpolation; 0 without a complete chunk */
    bool connected, first_frame;                              /* did it happen? */
    uint64_t handshake_us, first_frame_us;                    /* from the start */
    uint64_t play_time_us;                                    /* time in which the video advanced */
    uint64_t rebuffer_time_us;                                /* sum of stalls, one that is still open included */
    uint64_t rebuffer_count;
} player_summary;

/* For a run that has ended. */
void player_summarise(const player *, player_summary *);
const char *player_outcome_name(player_outcome);

#endif
