#include "player/report.h"

#include "base/jsonl.h"

const char *player_event_name(player_event_type type) {
    static const char *const names[] = {
        [PLAYER_EVENT_HANDSHAKE_DONE] = "handshake_done",
        [PLAYER_EVENT_REQUEST] = "request",
        [PLAYER_EVENT_FIRST_BYTE] = "first_byte",
        [PLAYER_EVENT_CHUNK_DONE] = "chunk_done",
        [PLAYER_EVENT_VIDEO] = "video",
        [PLAYER_EVENT_FIRST_FRAME] = "first_frame",
        [PLAYER_EVENT_PLAY] = "play",
        [PLAYER_EVENT_STALL_START] = "stall_start",
        [PLAYER_EVENT_STALL_END] = "stall_end",
        [PLAYER_EVENT_BUFFER] = "buffer",
        [PLAYER_EVENT_ERROR] = "error",
        [PLAYER_EVENT_END] = "end",
    };
    return names[type];
}

static json_t *integer(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *milliseconds(uint64_t us) {
    return json_real((double)us / 1e3);
}

json_t *player_event_fields(const player_event *e, uint64_t start_us) {
    switch (e->type) {
    case PLAYER_EVENT_REQUEST:
        return json_pack("{s:o, s:o, s:o}", "chunk", integer(e->chunk), "first", integer(e->first), "last",
                         integer(e->last));
    case PLAYER_EVENT_FIRST_BYTE:
        return json_pack("{s:o}", "chunk", integer(e->chunk));
    case PLAYER_EVENT_CHUNK_DONE:
        return json_pack("{s:o, s:o, s:o, s:o}", "chunk", integer(e->chunk), "bytes", integer(e->bytes), "rct_s",
                         jsonl_seconds(e->duration_us), "request_t", jsonl_seconds(e->requested_at - start_us));
    case PLAYER_EVENT_VIDEO:
        return json_pack("{s:o}", "video", integer(e->video));
    case PLAYER_EVENT_FIRST_FRAME:
        return json_pack("{s:o}", "latency_s", jsonl_seconds(e->duration_us));
    case PLAYER_EVENT_STALL_END:
        return json_pack("{s:o}", "duration_s", jsonl_seconds(e->duration_us));
    case PLAYER_EVENT_BUFFER:
        return json_pack("{s:o, s:o, s:o, s:o, s:o}", "buffered_bytes", integer(e->buffered_bytes), "buffered_ms",
                         milliseconds(e->buffered_us), "play_time_left_ms", milliseconds(e->left_us), "played_ms",
                         milliseconds(e->played_us), "received_bytes", integer(e->received_bytes));
    case PLAYER_EVENT_ERROR:
        return json_pack("{s:s}", "message", e->message);
    default:
        return NULL;
    }
}

json_t *player_summary_fields(const player_summary *s) {
    const double rcts[] = {s->rct_median_us, s->rct_p95_us, s->rct_p99_us, s->rct_max_us};
    static const char *const quantiles[] = {"median", "p95", "p99", "max"};
    json_t *rct = json_object();
    for (size_t i = 0; i < sizeof rcts / sizeof rcts[0]; i++)
        json_object_set_new(rct, quantiles[i], s->chunks > 0 ? json_real(rcts[i] / 1e6) : json_null());
    double rate = s->play_time_us > 0 ? (double)s->rebuffer_time_us / (double)s->play_time_us : 0;
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "outcome", player_outcome_name(s->outcome),
        "message", s->message, "chunks", integer(s->chunks), "bytes", integer(s->bytes), "rct_s", rct, "first_frame_s",
        s->first_frame ? jsonl_seconds(s->first_frame_us) : json_null(), "handshake_s",
        s->connected ? jsonl_seconds(s->handshake_us) : json_null(), "play_time_s", jsonl_seconds(s->play_time_us),
        "rebuffer_time_s", jsonl_seconds(s->rebuffer_time_us), "rebuffer_count", integer(s->rebuffer_count),
        "rebuffer_rate", s->play_time_us > 0 ? json_real(rate) : json_null());
}
