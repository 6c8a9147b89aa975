#include "server/report.h"

static const struct {
    const char *name;
    size_t offset;
} counters[] = {
    {"stream_bytes_sent", offsetof(server_totals, stream_bytes_sent)},
    {"reinjected_bytes", offsetof(server_totals, reinjected_bytes)},
    {"retransmitted_bytes", offsetof(server_totals, retransmitted_bytes)},
    {"given_up_bytes", offsetof(server_totals, given_up_bytes)},
    {"migrations", offsetof(server_totals, migrations)},
    {"connections", offsetof(server_totals, connections)},
    {"silent_connections", offsetof(server_totals, silent_connections)},
    {"refused", offsetof(server_totals, refused)},
    {"retries", offsetof(server_totals, retries)},
    {"stateless_resets", offsetof(server_totals, stateless_resets)},
    {"misrouted", offsetof(server_totals, misrouted)},
    {"forwarded", offsetof(server_totals, forwarded)},
};

#define COUNTERS (sizeof counters / sizeof counters[0])

static uint64_t *counter(const server_totals *t, size_t i) {
    return (uint64_t *)((uintptr_t)t + counters[i].offset);
}

void server_totals_add(server_totals *t, const server_totals *more) {
    for (size_t i = 0; i < COUNTERS; i++)
        *counter(t, i) += *counter(more, i);
    for (size_t i = 0; i < json_array_size(more->paths) && json_array_size(t->paths) < SERVER_SUMMARY_PATHS; i++)
        json_array_append(t->paths, json_array_get(more->paths, i));
}

json_t *server_totals_counters(const server_totals *t) {
    json_t *all = json_object();
    for (size_t i = 0; i < COUNTERS; i++)
        json_object_set_new(all, counters[i].name, json_integer((json_int_t)*counter(t, i)));
    return all;
}

void server_totals_take(server_totals *t, const json_t *all) {
    for (size_t i = 0; i < COUNTERS; i++) {
        const json_int_t value = json_integer_value(json_object_get(all, counters[i].name));
        *counter(t, i) += value > 0 ? (uint64_t)value : 0;
    }
}

json_t *server_request_fields(uint64_t connection, uint64_t stream, const char *path,
                              const catalogue_response *answer) {
    bool has_body = catalogue_body_left(&answer->body) > 0;
    json_t *text = path ? json_string(path) : NULL;
    return json_pack("{s:I, s:I, s:o, s:i, s:o, s:o}", "conn", (json_int_t)connection, "stream", (json_int_t)stream,
                     "path", text ? text : json_null(), "status", answer->status, "first",
                     has_body ? json_integer((json_int_t)answer->first) : json_null(), "last",
                     has_body ? json_integer((json_int_t)answer->last) : json_null());
}

json_t *server_describe(const server_config *o) {
    json_t *out = settings_values(quic_setting_rows, &o->settings, SETTING_OF_SERVER);
    json_object_update_new(out,
                           json_pack("{s:s?, s:b, s:s?, s:o, s:I, s:f, s:I}", "scheme", o->settings.name, "mptcp",
                                     (int)o->mptcp, "root", o->root, "seed", random_seed_json(&o->seed), "bitrate_bps",
                                     (json_int_t)o->video.bitrate_bps, "fps", o->video.fps_milli / 1e3,
                                     "first_frame_bytes", (json_int_t)o->video.first_frame_bytes));
    return out;
}

json_t *server_summary_fields(const server_totals *t) {
    bool known = t->connections == 0 || t->silent_connections < t->connections;
    uint64_t twice = t->reinjected_bytes + t->given_up_bytes;
    uint64_t fresh = t->stream_bytes_sent - (twice < t->stream_bytes_sent ? twice : 0);
    double redundancy = fresh > 0 ? (double)twice / (double)fresh : 0;
    json_t *fields = json_pack("{s:I, s:I, s:O, s:I, s:I}", "stream_bytes_sent", (json_int_t)t->stream_bytes_sent,
                               "retransmitted_bytes", (json_int_t)t->retransmitted_bytes, "paths", t->paths,
                               "migrations", (json_int_t)t->migrations, "connections", (json_int_t)t->connections);
    json_object_update_new(fields, json_pack("{s:I, s:I, s:I, s:I}", "retries", (json_int_t)t->retries,
                                             "stateless_resets", (json_int_t)t->stateless_resets, "misrouted",
                                             (json_int_t)t->misrouted, "forwarded", (json_int_t)t->forwarded));
    json_object_set_new(fields, "given_up_bytes", json_integer((json_int_t)t->given_up_bytes));
    if (t->refused > 0)
        json_object_set_new(fields, "refused", json_integer((json_int_t)t->refused));
    json_object_set_new(fields, "reinjected_bytes",
                        known ? json_integer((json_int_t)t->reinjected_bytes) : json_null());
    json_object_set_new(fields, "redundancy", known ? json_real(redundancy) : json_null());
    return fields;
}
