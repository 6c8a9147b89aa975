#include "player/player.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

typedef struct {
    uint64_t requested_at;
    uint64_t received;
    uint64_t rct_us;
} chunk_state;

typedef enum { PHASE_STARTUP, PHASE_PLAYING, PHASE_STALLED, PHASE_OVER } phase;

struct player {
    player_config config;
    player_sink *sink;
    void *user;
    phase phase;
    player_outcome outcome;
    char message[PLAYER_MESSAGE_BYTES];

    uint64_t started_at;
    uint64_t now; /* time of the state */
    bool connected;
    uint64_t connected_at;

    /* Chunks 0 .. next_chunk-1 are requested. `in_order`: first byte of this video that is not received. */
    uint64_t end; /* bytes to play of each video */
    /* Video v has the chunks v * chunk_count .. (v + 1) * chunk_count - 1. */
    uint64_t chunk_count, next_chunk, first_incomplete, complete, open;
    uint64_t video, videos, video_started_at;
    chunk_state *chunks;
    uint64_t in_order, received;
    bool deciding; /* player_wants() has returned next_chunk since decided_at */
    uint64_t decided_at;

    /* While playing, the play position at time t is anchor_bytes + floor((t - anchor_at) * bitrate / 8e6), at most
     * in_order; else it is anchor_bytes. The anchor moves only when playing starts or stops, so there is no drift. */
    uint64_t anchor_at, anchor_bytes;
    uint64_t first_frame_at; /* time, of this video; XL_NEVER: not yet */
    uint64_t first_frame_us; /* latency of the first video; XL_NEVER: not yet */
    uint64_t stall_at, rebuffer_us, stalls, play_us;
    uint64_t next_report;
};

const char *player_config_problem(const player_config *c) {
    if (c->chunk_bytes == 0)
        return "the chunk size must be at least one byte";
    uint64_t end = c->play_bytes != 0 ? c->play_bytes : c->video.bytes;
    if (end > c->video.bytes)
        return "the play ends after the video";
    uint64_t chunks = (end - 1) / c->chunk_bytes + 1, videos = c->videos > 1 ? c->videos : 1;
    if (videos > PLAYER_MAX_VIDEOS)
        return "there are more videos than a thousand";
    if (chunks > PLAYER_MAX_CHUNKS || chunks * videos > PLAYER_MAX_CHUNKS)
        return "the chunks are too small: more than a million make up the play";
    if (c->concurrency == 0 || c->concurrency > PLAYER_MAX_CONCURRENCY)
        return "the concurrency must be 1 to 64";
    if (c->startup_buffer_us > c->max_buffer_us || c->rebuffer_target_us > c->max_buffer_us)
        return "the start-up buffer and the re-buffer target must not exceed the maximum buffer";
    if (c->report_interval_us == 0 || c->time_limit_us == 0)
        return "the time limit and the report interval must be greater than zero";
    return NULL;
}

const char *player_config_video(player_config *c, uint64_t bytes, uint64_t bitrate_bps, uint64_t fps_milli,
                                uint64_t first_frame_bytes, uint64_t duration_us) {
    if (!video_init(&c->video, bytes, bitrate_bps, (uint32_t)fps_milli, first_frame_bytes))
        return "the bit rate is less than a byte a frame";
    if (duration_us > 0) {
        uint64_t played = video_bytes_in(bitrate_bps, duration_us);
        c->play_bytes = played < bytes ? played : bytes;
        c->play_bytes += c->play_bytes == 0;
    }
    return player_config_problem(c);
}

player *player_new(const player_config *config, player_sink *sink, void *user, uint64_t now) {
    if (player_config_problem(config))
        return NULL;
    player *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->config = *config;
    p->sink = sink;
    p->user = user;
    p->started_at = p->now = now;
    p->end = config->play_bytes != 0 ? config->play_bytes : config->video.bytes;
    p->chunk_count = (p->end - 1) / config->chunk_bytes + 1;
    p->videos = config->videos > 1 ? config->videos : 1;
    p->video_started_at = now;
    p->chunks = calloc(p->chunk_count * p->videos, sizeof *p->chunks);
    p->first_frame_at = p->first_frame_us = XL_NEVER;
    p->next_report = now;
    if (!p->chunks) {
        free(p);
        return NULL;
    }
    return p;
}

void player_free(player *p) {
    if (p) {
        free(p->chunks);
        free(p);
    }
}

static void emit(player *p, player_event event) {
    event.at = p->now;
    p->sink(p->user, &event);
}

uint64_t player_chunk_first(const player *p, uint64_t chunk) {
    return chunk % p->chunk_count * p->config.chunk_bytes;
}

static uint64_t chunk_size(const player *p, uint64_t chunk) {
    uint64_t left = p->end - player_chunk_first(p, chunk);
    return left < p->config.chunk_bytes ? left : p->config.chunk_bytes;
}

static uint64_t position_at(const player *p, uint64_t t) {
    if (p->phase != PHASE_PLAYING || t <= p->anchor_at)
        return p->anchor_bytes;
    uint64_t position = p->anchor_bytes + video_bytes_in(p->config.video.bitrate_bps, t - p->anchor_at);
    return position < p->in_order ? position : p->in_order;
}

/* Returns when the play position reaches `byte` without a stall. */
static uint64_t time_of(const player *p, uint64_t byte) {
    uint64_t ahead = byte > p->anchor_bytes ? byte - p->anchor_bytes : 0;
    uint64_t us = video_us_for(p->config.video.bitrate_bps, ahead);
    return us > XL_NEVER - p->anchor_at ? XL_NEVER : p->anchor_at + us;
}

/* Copies the message, made printable: it may hold a peer's or a user's bytes. */
static void keep_message(player *p, const char *message) {
    snprintf(p->message, sizeof p->message, "%s", message ? message : "");
    make_printable(p->message);
}

static void finish(player *p, player_outcome outcome, const char *message) {
    if (p->phase == PHASE_OVER)
        return;
    uint64_t position = position_at(p, p->now);
    if (p->phase == PHASE_PLAYING)
        p->play_us += p->now - p->anchor_at;
    else if (p->phase == PHASE_STALLED)
        p->rebuffer_us += p->now - p->stall_at;
    p->anchor_at = p->now;
    p->anchor_bytes = position;
    p->phase = PHASE_OVER;
    p->outcome = outcome;
    keep_message(p, message);
    if (p->message[0] != '\0')
        emit(p, (player_event){.type = PLAYER_EVENT_ERROR, .message = p->message});
    emit(p, (player_event){.type = PLAYER_EVENT_END});
}

/* Play-time left as the server computes it from the QoE signal (paper section 5.2.2). */
static uint64_t play_time_left(const player *p, uint64_t now) {
    xl_qoe qoe;
    player_qoe(p, now, &qoe);
    uint64_t frames = qoe.cached_frames * 1000000 / qoe.fps, bytes = video_us_for(qoe.bps, qoe.cached_bytes);
    return frames < bytes ? frames : bytes;
}

static void report_buffer(player *p) {
    uint64_t position = position_at(p, p->now), bps = p->config.video.bitrate_bps;
    emit(p, (player_event){
                .type = PLAYER_EVENT_BUFFER,
                .buffered_bytes = p->in_order - position,
                .buffered_us = video_us_for(bps, p->in_order - position),
                .left_us = play_time_left(p, p->now),
                .played_us = p->play_us + (p->phase == PHASE_PLAYING ? p->now - p->anchor_at : 0),
                .received_bytes = p->received,
            });
}

/* Switches to the next video at once. None of its chunks was requested before. */
static void next_video(player *p) {
    p->video++;
    p->phase = PHASE_STARTUP;
    p->video_started_at = p->now;
    p->first_frame_at = XL_NEVER;
    p->in_order = p->anchor_bytes = 0;
    emit(p, (player_event){.type = PLAYER_EVENT_VIDEO, .video = p->video});
}

/* Handles a play position that has reached in_order: next video, end or stall. */
static void run_dry(player *p) {
    p->play_us += p->now - p->anchor_at;
    p->anchor_bytes = p->in_order;
    p->anchor_at = p->now;
    if (p->in_order == p->end && p->video + 1 < p->videos) {
        next_video(p);
        return;
    }
    if (p->in_order == p->end) {
        finish(p, PLAYER_COMPLETE, NULL);
        return;
    }
    p->phase = PHASE_STALLED;
    p->stall_at = p->now;
    p->stalls++;
    emit(p, (player_event){.type = PLAYER_EVENT_STALL_START});
}

/* Handles all timers before `now` in order, and those at `now` if `inclusive`. Data received at `now` comes before
 * timers at `now`. */
static void advance(player *p, uint64_t now, bool inclusive) {
    while (p->phase != PHASE_OVER) {
        uint64_t dry = p->phase == PHASE_PLAYING ? time_of(p, p->in_order) : XL_NEVER;
        uint64_t limit = p->started_at + p->config.time_limit_us;
        uint64_t next = dry < p->next_report ? dry : p->next_report;
        next = limit < next ? limit : next;
        if (next > now || (next == now && !inclusive))
            break;
        p->now = next > p->now ? next : p->now;
        if (next == dry) {
            run_dry(p);
        } else if (next == p->next_report) {
            report_buffer(p);
            p->next_report += p->config.report_interval_us;
        } else {
            finish(p, p->connected ? PLAYER_TIME_LIMIT : PLAYER_CONNECT_FAILED,
                   p->connected ? NULL : "no answer from the server");
        }
    }
    p->now = now > p->now && p->phase != PHASE_OVER ? now : p->now;
}

static bool buffered_enough(const player *p, uint64_t target_us) {
    uint64_t buffered = p->in_order - p->anchor_bytes;
    return p->in_order == p->end || (buffered > 0 && video_us_for(p->config.video.bitrate_bps, buffered) >= target_us);
}

/* Starts or resumes playing if enough is buffered. */
static void maybe_play(player *p) {
    if (p->phase == PHASE_STARTUP && p->first_frame_at != XL_NEVER && buffered_enough(p, p->config.startup_buffer_us)) {
        emit(p, (player_event){.type = PLAYER_EVENT_PLAY});
    } else if (p->phase == PHASE_STALLED && buffered_enough(p, p->config.rebuffer_target_us)) {
        p->rebuffer_us += p->now - p->stall_at;
        emit(p, (player_event){.type = PLAYER_EVENT_STALL_END, .duration_us = p->now - p->stall_at});
    } else {
        return;
    }
    p->phase = PHASE_PLAYING;
    p->anchor_at = p->now;
}

void player_connected(player *p, uint64_t now) {
    advance(p, now, false);
    if (p->phase != PHASE_OVER && !p->connected) {
        p->connected = true;
        p->connected_at = p->now;
        emit(p, (player_event){.type = PLAYER_EVENT_HANDSHAKE_DONE});
    }
}

static void complete_chunk(player *p, uint64_t chunk) {
    chunk_state *c = &p->chunks[chunk];
    c->rct_us = p->now - c->requested_at;
    p->complete++;
    p->open--;
    emit(p, (player_event){.type = PLAYER_EVENT_CHUNK_DONE,
                           .chunk = chunk,
                           .bytes = c->received,
                           .requested_at = c->requested_at,
                           .duration_us = c->rct_us});
}

/* Updates in_order after bytes were received, and the state that depends on it. */
static void take_in_order(player *p) {
    while (p->first_incomplete < p->next_chunk &&
           p->chunks[p->first_incomplete].received == chunk_size(p, p->first_incomplete))
        p->first_incomplete++;
    p->in_order = p->end;
    if (p->first_incomplete < (p->video + 1) * p->chunk_count) {
        uint64_t partial = p->first_incomplete < p->next_chunk ? p->chunks[p->first_incomplete].received : 0;
        p->in_order = player_chunk_first(p, p->first_incomplete) + partial;
    }
    uint64_t frame = p->config.video.first_frame_bytes < p->end ? p->config.video.first_frame_bytes : p->end;
    if (p->first_frame_at == XL_NEVER && p->in_order >= frame) {
        p->first_frame_at = p->now;
        p->first_frame_us = p->video == 0 ? p->now - p->started_at : p->first_frame_us;
        emit(p, (player_event){.type = PLAYER_EVENT_FIRST_FRAME, .duration_us = p->now - p->video_started_at});
    }
    maybe_play(p);
}

void player_data(player *p, uint64_t chunk, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    advance(p, now, false);
    if (p->phase == PHASE_OVER || len == 0)
        return;
    if (chunk >= p->next_chunk || offset != p->chunks[chunk].received || len > chunk_size(p, chunk) - offset) {
        finish(p, PLAYER_ERROR, "the transport delivered bytes that were not asked for");
        return;
    }
    uint64_t at = player_chunk_first(p, chunk) + offset;
    if (p->config.verify) {
        size_t good = video_synthetic_check(data, len, at);
        if (good < len) {
            char message[PLAYER_MESSAGE_BYTES];
            snprintf(message, sizeof message, "byte %" PRIu64 " of the video is wrong", at + good);
            finish(p, PLAYER_ERROR, message);
            return;
        }
    }
    if (offset == 0)
        emit(p, (player_event){.type = PLAYER_EVENT_FIRST_BYTE, .chunk = chunk});
    p->chunks[chunk].received += len;
    p->received += len;
    if (p->chunks[chunk].received == chunk_size(p, chunk))
        complete_chunk(p, chunk);
    take_in_order(p);
}

void player_done(player *p, uint64_t chunk, uint64_t now) {
    advance(p, now, false);
    if (chunk >= p->next_chunk || p->chunks[chunk].received < chunk_size(p, chunk))
        finish(p, PLAYER_ERROR, "the server ended a response before its last byte");
}

void player_fail(player *p, player_outcome outcome, const char *message, uint64_t now) {
    advance(p, now, false);
    finish(p, outcome, message);
}

void player_step(player *p, uint64_t now) {
    advance(p, now, true);
}

/* The maximum of buffered and requested bytes. */
static uint64_t max_buffer_bytes(const player *p) {
    uint64_t bytes = video_bytes_in(p->config.video.bitrate_bps, p->config.max_buffer_us);
    return bytes > 0 ? bytes : 1;
}

/* Returns when the next chunk may be requested if no data comes before; XL_NEVER: not without data. */
static uint64_t request_time(const player *p) {
    if (p->phase == PHASE_OVER || !p->connected || p->next_chunk == (p->video + 1) * p->chunk_count ||
        p->open >= p->config.concurrency)
        return XL_NEVER;
    uint64_t next = player_chunk_first(p, p->next_chunk), room = max_buffer_bytes(p);
    uint64_t position = position_at(p, p->now);
    /* Without an open request there is always one more, or a buffer too small to start would block the player. */
    if (next < position + room || (p->phase != PHASE_PLAYING && p->open == 0))
        return p->now;
    return p->phase == PHASE_PLAYING ? time_of(p, next - room + 1) : XL_NEVER;
}

bool player_wants(player *p, uint64_t now, uint64_t *chunk, uint64_t *first, uint64_t *last) {
    advance(p, now, true);
    if (request_time(p) > p->now)
        return false;
    if (!p->deciding) {
        p->deciding = true;
        p->decided_at = p->now;
    }
    *chunk = p->next_chunk;
    *first = player_chunk_first(p, p->next_chunk);
    *last = *first + chunk_size(p, p->next_chunk) - 1;
    return true;
}

void player_requested(player *p, uint64_t now) {
    advance(p, now, true);
    if (p->phase == PHASE_OVER || !p->deciding)
        return;
    uint64_t chunk = p->next_chunk++, first = player_chunk_first(p, chunk);
    p->chunks[chunk].requested_at = p->decided_at;
    p->deciding = false;
    p->open++;
    emit(p,
         (player_event){
             .type = PLAYER_EVENT_REQUEST, .chunk = chunk, .first = first, .last = first + chunk_size(p, chunk) - 1});
}

uint64_t player_next_timeout(const player *p) {
    if (p->phase == PHASE_OVER)
        return XL_NEVER;
    uint64_t next = p->started_at + p->config.time_limit_us;
    next = p->next_report < next ? p->next_report : next;
    uint64_t dry = p->phase == PHASE_PLAYING ? time_of(p, p->in_order) : XL_NEVER;
    next = dry < next ? dry : next;
    /* A request that is decided waits for the transport, not for a time. */
    uint64_t request = p->deciding ? XL_NEVER : request_time(p);
    return request < next ? request : next;
}

bool player_over(const player *p) {
    return p->phase == PHASE_OVER;
}

/* The rest of a complete first frame, in frames of the usual duration: the signal counts frames of equal duration, but
 * at a constant bit rate a large first frame plays for the duration of several. */
static uint64_t first_frame_left(const player *p, uint64_t position) {
    const video *v = &p->config.video;
    uint64_t end = video_frame_begin(v, 1);
    if (position >= end || p->in_order < end)
        return 0;
    return (end - position) * 8 * v->fps_milli / (v->bitrate_bps * 1000);
}

void player_qoe(const player *p, uint64_t now, xl_qoe *out) {
    const video *v = &p->config.video;
    uint64_t position = position_at(p, now);
    uint64_t fps = v->fps_milli >= 1000 ? (v->fps_milli + 500) / 1000 : 1;
    uint64_t complete = video_frame_at(v, p->in_order);
    uint64_t next = video_frame_at(v, position);
    next += video_frame_begin(v, next) < position;
    next = next > 0 ? next : 1; /* first_frame_left() counts the first frame */
    *out = (xl_qoe){
        .cached_bytes = p->in_order - position,
        .cached_frames = (complete > next ? complete - next : 0) + first_frame_left(p, position),
        .bps = v->bitrate_bps,
        .fps = fps,
    };
}

const char *player_outcome_name(player_outcome outcome) {
    static const char *const names[] = {
        [PLAYER_RUNNING] = "running",
        [PLAYER_COMPLETE] = "complete",
        [PLAYER_TIME_LIMIT] = "time_limit",
        [PLAYER_CONNECT_FAILED] = "connect_failed",
        [PLAYER_CONNECTION_LOST] = "connection_lost",
        [PLAYER_ERROR] = "error",
        [PLAYER_INTERRUPTED] = "interrupted",
    };
    return names[outcome];
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Quantile by linear interpolation between closest ranks. */
static double quantile(const uint64_t *sorted, size_t n, double q) {
    double rank = q * (double)(n - 1);
    size_t below = (size_t)rank;
    size_t above = below + 1 < n ? below + 1 : below;
    return (double)sorted[below] + (rank - (double)below) * ((double)sorted[above] - (double)sorted[below]);
}

static void summarise_rct(const player *p, player_summary *out) {
    uint64_t *rct = p->complete > 0 ? malloc(p->complete * sizeof *rct) : NULL;
    if (!rct)
        return;
    size_t n = 0;
    for (uint64_t i = 0; i < p->next_chunk; i++)
        if (p->chunks[i].received == chunk_size(p, i))
            rct[n++] = p->chunks[i].rct_us;
    qsort(rct, n, sizeof *rct, compare_u64);
    out->rct_median_us = quantile(rct, n, 0.5);
    out->rct_p95_us = quantile(rct, n, 0.95);
    out->rct_p99_us = quantile(rct, n, 0.99);
    out->rct_max_us = quantile(rct, n, 1);
    free(rct);
}

void player_summarise(const player *p, player_summary *out) {
    *out = (player_summary){
        .outcome = p->outcome,
        .message = p->message,
        .chunks = p->complete,
        .bytes = p->received,
        .connected = p->connected,
        .first_frame = p->first_frame_us != XL_NEVER,
        .handshake_us = p->connected ? p->connected_at - p->started_at : 0,
        .first_frame_us = p->first_frame_us != XL_NEVER ? p->first_frame_us : 0,
        .play_time_us = p->play_us,
        .rebuffer_time_us = p->rebuffer_us,
        .rebuffer_count = p->stalls,
    };
    summarise_rct(p, out);
}
