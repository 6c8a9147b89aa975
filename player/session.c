#include "player/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/technology.h"
#include "player/report.h"

static void on_player_event(void *user, const player_event *event) {
    player_session *s = user;
    jsonl_write(s->log, player_event_name(event->type), player_event_fields(event, s->start_us), event->at);
}

static void on_watch(void *user, int fd, uint32_t events) {
    const player_session *s = user;
    if (s->hooks.watch)
        s->hooks.watch(s->hooks.user, fd, events);
}

static void on_connected(void *user, uint64_t now) {
    player_connected(((player_session *)user)->player, now);
}

static bool on_qoe(void *user, uint64_t now, xl_qoe *qoe) {
    player_session *s = user;
    bool has_new = s->has_new_qoe;
    s->has_new_qoe = false;
    if (has_new)
        player_qoe(s->player, now, qoe);
    return has_new;
}

static void on_data(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    player_session *s = user;
    player_data(s->player, id, offset, data, len, now);
    s->has_new_qoe = true;
    if (s->hooks.save && !player_over(s->player) &&
        !s->hooks.save(s->hooks.user, player_chunk_first(s->player, id) + offset, data, len)) {
        char message[PLAYER_MESSAGE_BYTES];
        snprintf(message, sizeof message, "cannot write the --save file: %s", strerror(errno));
        player_fail(s->player, PLAYER_ERROR, message, now);
    }
}

static void on_done(void *user, uint64_t id, uint64_t now) {
    player_done(((player_session *)user)->player, id, now);
}

static void on_failed(void *user, uint64_t id, const char *message, uint64_t now) {
    char text[PLAYER_MESSAGE_BYTES];
    snprintf(text, sizeof text, "request for chunk %" PRIu64 " failed: %s", id, message);
    player_fail(((player_session *)user)->player, PLAYER_ERROR, text, now);
}

static const char *path_name(const player_session *s, size_t path) {
    return path < s->options->transport_config.path_count ? s->options->paths[path].name : "?";
}

static void on_path(void *user, size_t path, const char *state, uint64_t now) {
    player_session *s = user;
    player_step(s->player, now); /* events before now come first */
    jsonl_write(s->log, "path", json_pack("{s:s, s:s}", "name", path_name(s, path), "state", state), now);
}

static void on_migrated(void *user, size_t from, size_t to, uint64_t now) {
    player_session *s = user;
    player_step(s->player, now);
    jsonl_write(s->log, "migrate", json_pack("{s:s, s:s}", "from", path_name(s, from), "to", path_name(s, to)), now);
}

static void on_closed(void *user, const char *message, uint64_t now) {
    player_session *s = user;
    player_summary summary;
    player_summarise(s->player, &summary);
    player_fail(s->player, summary.connected ? PLAYER_CONNECTION_LOST : PLAYER_CONNECT_FAILED, message, now);
}

static json_t *describe_paths(const player_options *o) {
    json_t *paths = json_array();
    for (size_t i = 0; i < o->transport_config.path_count; i++) {
        char text[64];
        json_array_append_new(paths, json_pack("{s:s, s:s, s:s}", "name", o->paths[i].name, "local",
                                               xl_addr_format(&o->paths[i].local, text, sizeof text), "technology",
                                               technology_name(o->paths[i].technology)));
    }
    return paths;
}

json_t *player_session_describe(const player_options *o) {
    const player_config *p = &o->player;
    const player_transport_config *t = &o->transport_config;
    json_t *out = json_pack("{s:s, s:s?, s:s, s:s, s:o, s:o}", "transport", o->transport->name, "scheme",
                            o->settings.name, "server", t->authority, "url", t->target, "paths", describe_paths(o),
                            "seed", random_seed_json(&t->seed));
    json_t *content = json_pack("{s:I, s:I, s:f, s:I, s:I}", "video_bytes", (json_int_t)p->video.bytes, "bitrate_bps",
                                (json_int_t)p->video.bitrate_bps, "fps", p->video.fps_milli / 1e3, "first_frame_bytes",
                                (json_int_t)p->video.first_frame_bytes, "play_bytes",
                                (json_int_t)(p->play_bytes != 0 ? p->play_bytes : p->video.bytes));
    json_t *play =
        json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:b}", "chunk_bytes", (json_int_t)p->chunk_bytes, "concurrency",
                  (int)p->concurrency, "startup_buffer_ms", (double)p->startup_buffer_us / 1e3, "rebuffer_target_ms",
                  (double)p->rebuffer_target_us / 1e3, "max_buffer_ms", (double)p->max_buffer_us / 1e3, "time_limit_s",
                  (double)p->time_limit_us / 1e6, "verify", (int)p->verify);
    json_object_update(out, content);
    json_object_update(out, play);
    json_decref(content);
    json_decref(play);
    return out;
}

static void write_summary(player_session *s, const player_summary *summary, uint64_t now) {
    json_t *fields = player_summary_fields(summary);
    size_t count = s->options->transport_config.path_count;
    player_path_stats stats[PLAYER_MAX_PATHS] = {0};
    if (!s->options->transport->path_stats) {
        json_object_set_new(fields, "handshake_s", json_null());
        count = 0;
    } else if (s->transport) {
        s->options->transport->path_stats(s->transport, stats);
    }
    json_t *paths = s->options->transport->path_stats ? json_array() : json_null();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(paths,
                              json_pack("{s:s, s:I, s:I, s:I}", "name", s->options->paths[i].name, "bytes_sent",
                                        (json_int_t)stats[i].bytes_sent, "bytes_received",
                                        (json_int_t)stats[i].bytes_received, "srtt_us", (json_int_t)stats[i].srtt_us));
    }
    json_object_set_new(fields, "paths", paths);
    if (s->transport && s->options->transport->summary)
        json_object_set_new(fields, "transport", s->options->transport->summary(s->transport));
    jsonl_write(s->log, "summary", fields, now);
}

static void make_requests(player_session *s, uint64_t now) {
    uint64_t chunk = 0, first = 0, last = 0;
    bool made = false;
    while (player_wants(s->player, now, &chunk, &first, &last) &&
           s->options->transport->request(s->transport, chunk, first, last, now)) {
        player_requested(s->player, now);
        made = true;
    }
    if (made)
        s->options->transport->step(s->transport, now);
}

bool player_session_start(player_session *s, const player_options *options, const player_session_hooks *hooks,
                          jsonl *log, uint64_t now) {
    *s = (player_session){.options = options, .hooks = *hooks, .log = log, .start_us = now};
    s->player = player_new(&options->player, on_player_event, s, now);
    if (!s->player)
        return false;
    const player_transport_callbacks callbacks = {
        .user = s,
        .watch = on_watch,
        .connected = on_connected,
        .data = on_data,
        .done = on_done,
        .failed = on_failed,
        .path = on_path,
        .migrated = on_migrated,
        .qoe = on_qoe,
        .closed = on_closed,
    };
    char error[PLAYER_ERROR_BYTES] = "";
    s->transport = options->transport->create(&options->transport_config, &callbacks, now, error);
    if (!s->transport)
        player_fail(s->player, PLAYER_CONNECT_FAILED, error, now);
    return true;
}

void player_session_step(player_session *s, uint64_t now) {
    player_step(s->player, now);
    if (player_over(s->player))
        return;
    s->has_new_qoe = true;
    s->options->transport->step(s->transport, now);
    make_requests(s, now);
}

uint64_t player_session_next_timeout(const player_session *s) {
    if (player_over(s->player))
        return XL_NEVER;
    uint64_t next = player_next_timeout(s->player), transport = s->options->transport->next_timeout(s->transport);
    return transport < next ? transport : next;
}

bool player_session_over(const player_session *s) {
    return player_over(s->player);
}

/* Returns the exit status and writes its reason. */
static int judge(const player_session *s, const player_summary *summary, char *error) {
    const player_transport_config *t = &s->options->transport_config;
    switch (summary->outcome) {
    case PLAYER_COMPLETE:
    case PLAYER_TIME_LIMIT:
        return 0;
    case PLAYER_CONNECT_FAILED:
        snprintf(error, PLAYER_SESSION_ERROR_BYTES, "cannot connect to %s by %s: %s", t->authority,
                 s->options->transport->name, summary->message);
        return 2;
    case PLAYER_CONNECTION_LOST:
        snprintf(error, PLAYER_SESSION_ERROR_BYTES, "the connection to %s was lost: %s", t->authority,
                 summary->message);
        return 1;
    default:
        snprintf(error, PLAYER_SESSION_ERROR_BYTES, "%s", summary->message);
        return 1;
    }
}

int player_session_finish(player_session *s, uint64_t now, char *error) {
    player_summary summary;
    player_summarise(s->player, &summary);
    write_summary(s, &summary, now);
    if (s->transport) {
        s->options->transport->close(s->transport, now);
        s->transport = NULL;
    }
    return judge(s, &summary, error);
}

void player_session_free(player_session *s) {
    player_free(s->player);
    s->player = NULL;
}
