/* The player on a virtual clock. Each test provides responses and their times. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "player/player.h"
#include "player/report.h"

#define MS         UINT64_C(1000)
#define SECOND     UINT64_C(1000000)
#define MAX_EVENTS 4096
#define START      (UINT64_C(5) * SECOND) /* the clock need not start at zero */

typedef struct {
    player *p;
    player_config config;
    player_event events[MAX_EVENTS];
    size_t count;
} bench;

static void record(void *user, const player_event *event) {
    bench *b = user;
    assert_true(b->count < MAX_EVENTS);
    assert_true(b->count == 0 || event->at >= b->events[b->count - 1].at);
    b->events[b->count++] = *event;
}

/* 8 Mbit/s: 1 byte per us. 1 MB of video plays 1 s, a chunk of 100 kB 100 ms; a frame at 25/s has 40 kB. */
static player_config basic(void) {
    player_config c = {
        .chunk_bytes = 100000,
        .concurrency = 1,
        .rebuffer_target_us = 200 * MS,
        .max_buffer_us = 400 * MS,
        .time_limit_us = 60 * SECOND,
        .report_interval_us = 100 * MS,
    };
    assert_true(video_init(&c.video, 1000000, 8000000, 25000, 50000));
    return c;
}

static void start(bench *b, player_config config) {
    memset(b, 0, sizeof *b);
    b->config = config;
    b->p = player_new(&config, record, b, START);
    assert_non_null(b->p);
}

static void bench_free(bench *b) {
    player_free(b->p);
}

static player_summary summary_of(const bench *b) {
    player_summary s;
    player_summarise(b->p, &s);
    return s;
}

#define BENCH_TEST(name) TEST_OF(name, bench, b, bench_free)

/* Returns the n-th event of a type, from 0; NULL: there are fewer. */
static const player_event *nth(const bench *b, player_event_type type, size_t n) {
    for (size_t i = 0; i < b->count; i++)
        if (b->events[i].type == type && n-- == 0)
            return &b->events[i];
    return NULL;
}

static size_t count_of(const bench *b, player_event_type type) {
    size_t n = 0;
    while (nth(b, type, n))
        n++;
    return n;
}

/* Takes all requests that the player wants. Returns their number. */
static size_t take_requests(bench *b, uint64_t now) {
    uint64_t chunk, first, last;
    size_t n = 0;
    while (player_wants(b->p, now, &chunk, &first, &last)) {
        assert_int_equal(first, chunk * b->config.chunk_bytes);
        player_requested(b->p, now);
        n++;
    }
    return n;
}

/* Delivers `len` correct bytes of a chunk. */
static void deliver(bench *b, uint64_t chunk, uint64_t offset, size_t len, uint64_t now) {
    uint8_t *data = malloc(len);
    assert_non_null(data);
    video_synthetic_fill(data, len, chunk * b->config.chunk_bytes + offset);
    player_data(b->p, chunk, offset, data, len, now);
    free(data);
}

static void connect_and_request(bench *b, uint64_t now) {
    player_connected(b->p, now);
    assert_true(take_requests(b, now) > 0);
}

BENCH_TEST(play_starts_with_the_last_byte_of_the_first_frame) {
    start(b, basic());
    uint64_t chunk, first, last;
    assert_false(player_wants(b->p, START + 1, &chunk, &first, &last)); /* not before the handshake */
    connect_and_request(b, START + 20 * MS);
    deliver(b, 0, 0, 49999, START + 30 * MS);
    assert_null(nth(b, PLAYER_EVENT_FIRST_FRAME, 0));
    deliver(b, 0, 49999, 1, START + 33 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_FIRST_FRAME, 0)->at, START + 33 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_FIRST_FRAME, 0)->duration_us, 33 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_PLAY, 0)->at, START + 33 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_FIRST_BYTE, 0)->at, START + 30 * MS);
}

BENCH_TEST(start_up_buffer_delays_the_play_but_not_the_first_frame) {
    player_config c = basic();
    c.startup_buffer_us = 150 * MS;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 100000, START + 10 * MS);
    assert_non_null(nth(b, PLAYER_EVENT_FIRST_FRAME, 0));
    assert_null(nth(b, PLAYER_EVENT_PLAY, 0));
    assert_int_equal(take_requests(b, START + 10 * MS), 1);
    deliver(b, 1, 0, 49999, START + 20 * MS);
    assert_null(nth(b, PLAYER_EVENT_PLAY, 0));
    deliver(b, 1, 49999, 1, START + 21 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_PLAY, 0)->at, START + 21 * MS);
}

BENCH_TEST(a_stall_is_dated_by_the_last_byte_not_by_the_poll) {
    start(b, basic());
    connect_and_request(b, START);
    deliver(b, 0, 0, 60000, START + 10 * MS); /* plays for 60 ms */
    /* Data comes long after the stall began, in two steps around the re-buffer target of 200 kB. */
    deliver(b, 0, 60000, 40000, START + 500 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_START, 0)->at, START + 70 * MS);
    assert_null(nth(b, PLAYER_EVENT_STALL_END, 0));
    assert_int_equal(take_requests(b, START + 500 * MS), 1);
    deliver(b, 1, 0, 100000, START + 600 * MS);
    assert_int_equal(take_requests(b, START + 600 * MS), 1);
    deliver(b, 2, 0, 59999, START + 650 * MS);
    assert_null(nth(b, PLAYER_EVENT_STALL_END, 0));
    deliver(b, 2, 59999, 1, START + 660 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_END, 0)->at, START + 660 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_END, 0)->duration_us, 590 * MS);
    /* It resumes at byte 60000 and stalls 200 ms later. */
    player_step(b->p, START + 5 * SECOND);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_START, 1)->at, START + 860 * MS);
    player_fail(b->p, PLAYER_INTERRUPTED, NULL, START + 5 * SECOND);
    const player_summary s = summary_of(b);
    assert_int_equal(s.play_time_us, 260 * MS);
    assert_int_equal(s.rebuffer_count, 2);
    assert_int_equal(s.rebuffer_time_us, 590 * MS + (5 * SECOND - 860 * MS)); /* the open stall counts */
}

BENCH_TEST(data_in_time_to_the_microsecond_prevents_the_stall) {
    start(b, basic());
    connect_and_request(b, START);
    deliver(b, 0, 0, 60000, START);
    deliver(b, 0, 60000, 40000, START + 60 * MS);
    assert_int_equal(take_requests(b, START + 60 * MS), 1);
    player_step(b->p, START + 99999);
    assert_null(nth(b, PLAYER_EVENT_STALL_START, 0));
    assert_int_equal(player_next_timeout(b->p), START + 100 * MS);
    player_step(b->p, START + 100 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_START, 0)->at, START + 100 * MS);
}

BENCH_TEST(play_position_does_not_drift) {
    player_config c = basic();
    /* 3 Mbit/s: 2.67 us per byte. 4.5 MB play exactly 12 s for any number of steps. */
    assert_true(video_init(&c.video, 4500000, 3000000, 29970, 1000));
    c.chunk_bytes = 4500000;
    c.max_buffer_us = 20 * SECOND;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 4500000, START + 7);
    xl_qoe qoe;
    for (uint64_t t = START + 7; t < START + 12 * SECOND; t += 1234567 / 100) {
        player_step(b->p, t);
        player_qoe(b->p, t, &qoe);
        assert_int_equal(qoe.cached_bytes, 4500000 - (t - START - 7) * 3 / 8);
    }
    player_step(b->p, START + 13 * SECOND);
    assert_true(player_over(b->p));
    assert_int_equal(nth(b, PLAYER_EVENT_END, 0)->at, START + 7 + 12 * SECOND);
    assert_int_equal(player_next_timeout(b->p), XL_NEVER);
}

BENCH_TEST(a_full_buffer_stops_requests_until_the_exact_moment_of_room) {
    start(b, basic()); /* room for 400 kB: four chunks */
    connect_and_request(b, START);
    for (uint64_t i = 0; i < 4; i++) {
        deliver(b, i, 0, 100000, START + (i + 1) * MS);
        take_requests(b, START + (i + 1) * MS);
    }
    /* Playing began at 1 ms, so the position is 3000: chunk 4 begins at 400000 < 403000. */
    assert_int_equal(count_of(b, PLAYER_EVENT_REQUEST), 5);
    deliver(b, 4, 0, 100000, START + 5 * MS);
    uint64_t chunk, first, last, room = START + 1 * MS + 100001;
    assert_false(player_wants(b->p, START + 5 * MS, &chunk, &first, &last));
    /* the next buffer report */
    assert_int_equal(player_next_timeout(b->p), START + 100 * MS);
    player_step(b->p, START + 100 * MS);
    assert_int_equal(player_next_timeout(b->p), room);
    assert_false(player_wants(b->p, room - 1, &chunk, &first, &last));
    assert_true(player_wants(b->p, room, &chunk, &first, &last));
    assert_int_equal(first, 500000);
    assert_int_equal(last, 599999);
}

BENCH_TEST(chunks_are_requested_in_sequence_up_to_the_concurrency) {
    player_config c = basic();
    c.concurrency = 3;
    c.max_buffer_us = 10 * SECOND;
    start(b, c);
    player_connected(b->p, START);
    assert_int_equal(take_requests(b, START), 3);
    /* Chunks complete out of order; only bytes in order count as buffered and start the play. */
    deliver(b, 1, 0, 100000, START + 10 * MS);
    assert_int_equal(take_requests(b, START + 11 * MS), 1);
    deliver(b, 2, 0, 50000, START + 12 * MS);
    assert_null(nth(b, PLAYER_EVENT_FIRST_FRAME, 0));
    xl_qoe qoe;
    player_qoe(b->p, START + 12 * MS, &qoe);
    assert_int_equal(qoe.cached_bytes, 0);
    deliver(b, 0, 0, 100000, START + 20 * MS);
    player_qoe(b->p, START + 20 * MS, &qoe);
    assert_int_equal(qoe.cached_bytes, 250000);
    assert_int_equal(nth(b, PLAYER_EVENT_FIRST_FRAME, 0)->at, START + 20 * MS);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(nth(b, PLAYER_EVENT_REQUEST, i)->chunk, i);
    const player_event *done = nth(b, PLAYER_EVENT_CHUNK_DONE, 0);
    assert_int_equal(done->chunk, 1);
    assert_int_equal(done->duration_us, 10 * MS);
}

BENCH_TEST(rct_counts_from_the_decision_not_from_the_transports_consent) {
    start(b, basic());
    player_connected(b->p, START + 10 * MS);
    uint64_t chunk, first, last;
    assert_true(player_wants(b->p, START + 10 * MS, &chunk, &first, &last));
    assert_true(player_wants(b->p, START + 25 * MS, &chunk, &first, &last)); /* the transport had no room */
    player_requested(b->p, START + 25 * MS);
    deliver(b, 0, 0, 100000, START + 40 * MS);
    const player_event *done = nth(b, PLAYER_EVENT_CHUNK_DONE, 0);
    assert_int_equal(done->requested_at, START + 10 * MS);
    assert_int_equal(done->duration_us, 30 * MS);
}

/* 128 KiB at 2 Mbit/s play for 0.52 s: 15 frames of 1/30 s. If they counted as one, re-injection would start for
 * nothing. */
BENCH_TEST(qoe_counts_a_large_first_frame_by_its_duration) {
    player_config c = basic();
    c.video = (video){.bytes = 5000000, .bitrate_bps = 2000000, .fps_milli = 30000, .first_frame_bytes = 131072};
    c.chunk_bytes = 262144;
    c.play_bytes = 0;
    c.startup_buffer_us = c.max_buffer_us;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 131072, START);
    xl_qoe qoe;
    player_qoe(b->p, START, &qoe);
    assert_int_equal(qoe.cached_frames, 15);
    deliver(b, 0, 131072, 83334, START); /* ten more frames */
    player_qoe(b->p, START, &qoe);
    assert_int_equal(qoe.cached_frames, 25);
    assert_int_equal(qoe.cached_bytes, 131072 + 83334);
}

TEST(qoe_counts_whole_frames_that_have_not_begun) {
    bench b;
    start(&b, basic()); /* frames: 0..50000, then 40000 each */
    xl_qoe qoe;
    player_qoe(b.p, START, &qoe);
    assert_true(qoe.cached_bytes == 0 && qoe.cached_frames == 0 && qoe.bps == 8000000 && qoe.fps == 25);
    player_config c = basic();
    player_free(b.p);
    c.startup_buffer_us = 100 * MS;
    start(&b, c);
    connect_and_request(&b, START);
    deliver(&b, 0, 0, 99999, START); /* frames 0 and 1 (to 90000) are complete; not playing yet */
    player_qoe(b.p, START, &qoe);
    assert_int_equal(qoe.cached_frames, 2);
    deliver(&b, 0, 99999, 1, START);  /* plays */
    player_qoe(b.p, START + 1, &qoe); /* frame 0 has begun, and plays for more than a frame's duration */
    assert_int_equal(qoe.cached_bytes, 99999);
    assert_int_equal(qoe.cached_frames, 2);
    player_qoe(b.p, START + 10001, &qoe); /* it plays for less than a frame's duration */
    assert_int_equal(qoe.cached_frames, 1);
    player_qoe(b.p, START + 50000, &qoe); /* at the start of frame 1 */
    assert_int_equal(qoe.cached_frames, 1);
    player_qoe(b.p, START + 50001, &qoe);
    assert_int_equal(qoe.cached_bytes, 49999);
    assert_int_equal(qoe.cached_frames, 0);
    player_free(b.p);
}

BENCH_TEST(the_buffer_is_reported_at_exact_intervals) {
    start(b, basic());
    connect_and_request(b, START + 10 * MS);
    deliver(b, 0, 0, 100000, START + 50 * MS);
    player_step(b->p, START + 250 * MS);
    assert_int_equal(count_of(b, PLAYER_EVENT_BUFFER), 3);
    const player_event *e = nth(b, PLAYER_EVENT_BUFFER, 1);
    assert_int_equal(e->at, START + 100 * MS);
    assert_int_equal(e->buffered_bytes, 50000);
    assert_int_equal(e->buffered_us, 50 * MS);
    assert_int_equal(e->left_us, 40 * MS); /* whole frames only */
    assert_int_equal(e->played_us, 50 * MS);
    assert_int_equal(e->received_bytes, 100000);
    e = nth(b, PLAYER_EVENT_BUFFER, 2); /* in the stall that began at 150 ms */
    assert_int_equal(e->at, START + 200 * MS);
    assert_int_equal(e->buffered_bytes, 0);
    assert_int_equal(e->played_us, 100 * MS);
}

BENCH_TEST(a_flipped_byte_ends_the_run_and_is_named) {
    player_config c = basic();
    c.verify = true;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 60000, START + 1);
    uint8_t data[1000];
    video_synthetic_fill(data, sizeof data, 60000);
    data[123] ^= 1;
    player_data(b->p, 0, 60000, data, sizeof data, START + 2);
    assert_true(player_over(b->p));
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_ERROR);
    assert_string_equal(s.message, "byte 60123 of the video is wrong");
    assert_int_equal(s.bytes, 60000);
}

TEST(bytes_nobody_asked_for_end_the_run) {
    const struct {
        size_t first; /* bytes of chunk 0 received before */
        uint64_t chunk, offset;
        size_t len;
    } table[] = {{0, 1, 0, 10},         {0, 0, 5, 10},  {0, 0, 0, 100001},       {0, UINT64_MAX, 0, 1},
                 {0, 0, UINT64_MAX, 1}, {10, 0, 9, 10}, {60000, 0, 60000, 40001}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bench b;
        start(&b, basic());
        connect_and_request(&b, START);
        deliver(&b, 0, 0, table[i].first, START);
        uint8_t *data = calloc(1, table[i].len);
        assert_non_null(data);
        player_data(b.p, table[i].chunk, table[i].offset, data, table[i].len, START + 1);
        free(data);
        const player_summary s = summary_of(&b);
        assert_int_equal(s.outcome, PLAYER_ERROR);
        player_free(b.p);
    }
}

BENCH_TEST(a_response_that_ends_early_ends_the_run) {
    start(b, basic());
    connect_and_request(b, START);
    deliver(b, 0, 0, 99999, START + 1);
    player_done(b->p, 0, START + 2);
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_ERROR);
}

BENCH_TEST(the_time_limit_ends_the_run_at_its_exact_time) {
    player_config c = basic();
    c.time_limit_us = 2 * SECOND;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 100000, START);
    player_step(b->p, START + 9 * SECOND);
    assert_true(player_over(b->p));
    assert_int_equal(nth(b, PLAYER_EVENT_END, 0)->at, START + 2 * SECOND);
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_TIME_LIMIT);
    assert_int_equal(s.rebuffer_time_us, 1900 * MS);
    assert_int_equal(s.play_time_us, 100 * MS);
}

/* Playing is ended by the limit or by player_fail(): play time and received bytes until then count. */
TEST(an_end_in_mid_play_counts_what_was_played) {
    for (int by_limit = 0; by_limit < 2; by_limit++) {
        bench b;
        player_config c = basic();
        c.time_limit_us = by_limit ? 160 * MS : 60 * SECOND;
        start(&b, c);
        connect_and_request(&b, START + 10 * MS);
        player_connected(b.p, START + 15 * MS); /* a second call has no effect */
        deliver(&b, 0, 0, 60000, START + 20 * MS);
        deliver(&b, 0, 60000, 40000, START + 30 * MS);
        player_done(b.p, 0, START + 30 * MS);
        assert_int_equal(take_requests(&b, START + 30 * MS), 1);
        deliver(&b, 1, 0, 100000, START + 40 * MS);
        player_done(b.p, 1, START + 90 * MS);
        if (by_limit)
            player_step(b.p, START + 900 * MS);
        else
            player_fail(b.p, PLAYER_CONNECTION_LOST, "gone", START + 160 * MS);
        assert_int_equal(nth(&b, PLAYER_EVENT_END, 0)->at, START + 160 * MS);
        assert_int_equal(count_of(&b, PLAYER_EVENT_FIRST_BYTE), 2);
        assert_int_equal(count_of(&b, PLAYER_EVENT_HANDSHAKE_DONE), 1);
        const player_summary s = summary_of(&b);
        assert_int_equal(s.outcome, by_limit ? PLAYER_TIME_LIMIT : PLAYER_CONNECTION_LOST);
        assert_int_equal(s.play_time_us, 140 * MS);
        assert_int_equal(s.rebuffer_time_us, 0);
        assert_int_equal(s.handshake_us, 10 * MS);
        assert_int_equal(s.bytes, 200000);
        player_free(b.p);
    }
}

/* A failure happens when it is reported, so a stall that began before counts. */
BENCH_TEST(a_late_failure_finds_the_stall_before_it) {
    start(b, basic());
    connect_and_request(b, START);
    deliver(b, 0, 0, 100000, START);
    player_fail(b->p, PLAYER_CONNECTION_LOST, "gone", START + 350 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_STALL_START, 0)->at, START + 100 * MS);
    const player_summary s = summary_of(b);
    assert_int_equal(s.rebuffer_time_us, 250 * MS);
    assert_int_equal(s.rebuffer_count, 1);
}

BENCH_TEST(the_first_outcome_stays) {
    start(b, basic());
    player_fail(b->p, PLAYER_CONNECT_FAILED, "connection refused", START + 5);
    player_fail(b->p, PLAYER_ERROR, "other", START + 6);
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_CONNECT_FAILED);
    assert_string_equal(s.message, "connection refused");
    assert_false(s.connected);
    assert_int_equal(count_of(b, PLAYER_EVENT_END), 1);
}

BENCH_TEST(a_peers_bytes_in_a_message_do_not_break_the_log) {
    start(b, basic());
    player_fail(b->p, PLAYER_CONNECTION_LOST, "closed: \xff\x01\n\"x\"", START);
    const player_summary s = summary_of(b);
    assert_string_equal(s.message, "closed: ???\"x\"");
    json_t *fields = player_event_fields(nth(b, PLAYER_EVENT_ERROR, 0), START);
    assert_string_equal(json_string_value(json_object_get(fields, "message")), s.message);
    json_decref(fields);
}

BENCH_TEST(duration_plays_only_the_opening) {
    player_config c = basic();
    c.play_bytes = 150000;
    start(b, c);
    connect_and_request(b, START);
    deliver(b, 0, 0, 100000, START);
    assert_int_equal(take_requests(b, START), 1);
    assert_int_equal(nth(b, PLAYER_EVENT_REQUEST, 1)->last, 149999);
    deliver(b, 1, 0, 50000, START + 10);
    assert_int_equal(take_requests(b, START + 10), 0);
    player_step(b->p, START + SECOND);
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_COMPLETE);
    assert_int_equal(s.play_time_us, 150 * MS);
}

/* Takes the player's request, and checks that it is for this chunk, which begins at byte `first` of its video. */
static void take_request(bench *b, uint64_t chunk, uint64_t first, uint64_t now) {
    uint64_t wanted, begin, end;
    assert_true(player_wants(b->p, now, &wanted, &begin, &end));
    assert_int_equal(wanted, chunk);
    assert_int_equal(begin, first);
    assert_int_equal(begin, player_chunk_first(b->p, chunk));
    player_requested(b->p, now);
}

static void deliver_of_video(bench *b, uint64_t chunk, size_t offset, size_t len, uint64_t now) {
    uint8_t data[100000];
    video_synthetic_fill(data, len, player_chunk_first(b->p, chunk) + offset);
    player_data(b->p, chunk, offset, data, len, now);
}

BENCH_TEST(the_next_video_starts_anew_when_the_last_one_is_over) {
    player_config c = basic();
    c.play_bytes = 200000; /* two chunks, 200 ms */
    c.videos = 2;
    c.verify = true;
    start(b, c);
    player_connected(b->p, START);
    take_request(b, 0, 0, START);
    deliver_of_video(b, 0, 0, 100000, START + 10 * MS);
    take_request(b, 1, 100000, START + 10 * MS);
    deliver_of_video(b, 1, 0, 100000, START + 20 * MS);
    uint64_t chunk, first, last;
    assert_false(player_wants(b->p, START + 200 * MS, &chunk, &first,
                              &last)); /* no request for the next video before it begins */
    assert_int_equal(player_next_timeout(b->p), START + 210 * MS);
    player_step(b->p, START + 210 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_VIDEO, 0)->at, START + 210 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_VIDEO, 0)->video, 1);
    xl_qoe qoe;
    player_qoe(b->p, START + 210 * MS, &qoe);
    assert_int_equal(qoe.cached_bytes, 0);
    take_request(b, 2, 0, START + 210 * MS);
    deliver_of_video(b, 2, 0, 50000, START + 240 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_FIRST_FRAME, 1)->duration_us, 30 * MS);
    assert_int_equal(nth(b, PLAYER_EVENT_PLAY, 1)->at, START + 240 * MS);
    deliver_of_video(b, 2, 50000, 50000, START + 250 * MS);
    take_request(b, 3, 100000, START + 250 * MS);
    deliver_of_video(b, 3, 0, 100000, START + 260 * MS);
    player_step(b->p, START + 500 * MS);
    assert_true(player_over(b->p));
    const player_summary summary = summary_of(b);
    assert_int_equal(summary.outcome, PLAYER_COMPLETE);
    assert_int_equal(summary.first_frame_us, 10 * MS); /* of the first video */
    assert_int_equal(summary.chunks, 4);
    assert_int_equal(summary.bytes, 400000);
    assert_int_equal(summary.play_time_us, 400 * MS);
    assert_int_equal(summary.rebuffer_count, 0); /* start-up does not count as re-buffering */
}

BENCH_TEST(a_buffer_smaller_than_the_first_frame_still_plays) {
    player_config c = basic();
    assert_true(video_init(&c.video, 1000000, 8000000, 25000, 700000));
    c.max_buffer_us = c.rebuffer_target_us = 50 * MS;
    start(b, c);
    player_connected(b->p, START);
    uint64_t t = START;
    for (int i = 0; i < 100000 && !player_over(b->p); i++) {
        if (take_requests(b, t) > 0) {
            deliver(b, nth(b, PLAYER_EVENT_REQUEST, count_of(b, PLAYER_EVENT_REQUEST) - 1)->chunk, 0, 100000, t);
        } else {
            t = player_next_timeout(b->p);
            player_step(b->p, t);
        }
    }
    const player_summary s = summary_of(b);
    assert_int_equal(s.outcome, PLAYER_COMPLETE);
    assert_int_equal(s.chunks, 10);
}

BENCH_TEST(quantiles_interpolate_between_ranks) {
    player_config c = basic();
    c.max_buffer_us = 10 * SECOND;
    start(b, c);
    player_connected(b->p, START);
    uint64_t t = START;
    const uint64_t rct[4] = {40 * MS, 10 * MS, 30 * MS, 20 * MS};
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(take_requests(b, t), 1);
        t += rct[i];
        deliver(b, i, 0, 100000, t);
    }
    player_fail(b->p, PLAYER_INTERRUPTED, NULL, t);
    const player_summary s = summary_of(b);
    assert_int_equal(s.chunks, 4);
    assert_true(s.rct_median_us == 25e3);
    assert_true(s.rct_p95_us > 38.4e3 && s.rct_p95_us < 38.6e3);
    assert_true(s.rct_p99_us > 39.6e3 && s.rct_p99_us < 39.8e3);
    assert_true(s.rct_max_us == 40e3);
    assert_true(s.first_frame && s.first_frame_us > 0);
    json_t *fields = player_summary_fields(&s);
    assert_true(json_real_value(json_object_get(json_object_get(fields, "rct_s"), "median")) == 0.025);
    assert_string_equal(json_string_value(json_object_get(fields, "outcome")), "interrupted");
    json_decref(fields);
}

TEST(impossible_configurations_are_refused) {
    player_config good = basic(), c = good;
    assert_null(player_config_problem(&good));
    c.chunk_bytes = 0;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.concurrency = 0;
    assert_non_null(player_config_problem(&c));
    c.concurrency = PLAYER_MAX_CONCURRENCY + 1;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.rebuffer_target_us = c.max_buffer_us + 1;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.play_bytes = c.video.bytes + 1;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.video.bytes = VIDEO_MAX_BYTES;
    c.chunk_bytes = 1;
    assert_non_null(player_config_problem(&c));
    assert_null(player_new(&c, record, NULL, 0));
    c.chunk_bytes = VIDEO_MAX_BYTES / (PLAYER_MAX_CHUNKS / 2) + 1;
    c.videos = 2;
    assert_null(player_config_problem(&c));
    c.videos = 3;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.time_limit_us = 0;
    assert_non_null(player_config_problem(&c));
    c = good;
    c.report_interval_us = 0;
    assert_non_null(player_config_problem(&c));
}

TEST_MAIN(NULL, NULL)
