#include "emulator/sim/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/technology.h"
#include "video/video.h"

#define DAY_MS      UINT64_C(86400000)
#define MAX_TIME_MS (1000 * DAY_MS)

/* Settings that may differ from player to player. */
typedef struct {
    sim_player_job player;
    json_t *path_events; /* borrowed */
} player_settings;

#define FIELD(member)  SETTING_FIELD(player_settings, player.member)
#define OPTION(member) FIELD(options.member)

/* Members of the job (for all players) and of one player. */
static const setting shared_rows[] = {
    {"primary", SETTING_TEXT, OPTION(primary)},
    {"path_order", SETTING_TEXT, OPTION(path_order)},
    {"send_buffer_bytes", SETTING_WHOLE, OPTION(settings.limits.send_buffer_bytes), .least = 4096, .most = 1 << 30},
    {"time_limit_s", SETTING_DECIMAL, OPTION(player.time_limit_us), .least = 1, .most = MAX_TIME_MS, .scale = 1000},
    {0},
};
static const char *const read_apart[] = {"path_events", "player",      "paths", "bottlenecks",
                                         "players",     "link_events", NULL};

static const setting player_entry_rows[] = {
    {"start_s", SETTING_DECIMAL, FIELD(start_us), .most = MAX_TIME_MS, .scale = 1000},
    {"own_links", SETTING_FLAG, FIELD(own_links)},
    {0},
};
static const char *const read_apart_of_player[] = {"path_events", "player", NULL};

static const setting play_rows[] = {
    {"video_bytes", SETTING_WHOLE, OPTION(size_bytes), .least = 1, .most = VIDEO_MAX_BYTES},
    {"bitrate_bps", SETTING_WHOLE, OPTION(bitrate_bps), .least = 1, .most = VIDEO_MAX_BITRATE_BPS},
    {"chunk_bytes", SETTING_WHOLE, OPTION(player.chunk_bytes), .least = 1, .most = VIDEO_MAX_BYTES},
    {"concurrency", SETTING_WHOLE, OPTION(player.concurrency), .least = 1, .most = PLAYER_MAX_CONCURRENCY},
    {"fps", SETTING_DECIMAL, OPTION(fps_milli), .least = 1, .most = VIDEO_MAX_FPS_MILLI},
    {"first_frame_bytes", SETTING_WHOLE, OPTION(first_frame_bytes), .least = 1, .most = VIDEO_MAX_BYTES},
    {"startup_buffer_ms", SETTING_DECIMAL, OPTION(player.startup_buffer_us), .most = MAX_TIME_MS * 1000},
    {"rebuffer_target_ms", SETTING_DECIMAL, OPTION(player.rebuffer_target_us), .most = MAX_TIME_MS * 1000},
    {"max_buffer_ms", SETTING_DECIMAL, OPTION(player.max_buffer_us), .most = MAX_TIME_MS * 1000},
    {"duration_s", SETTING_DECIMAL, OPTION(duration_us), .least = 1, .most = MAX_TIME_MS, .scale = 1000},
    {"videos", SETTING_WHOLE, OPTION(player.videos), .least = 1, .most = PLAYER_MAX_VIDEOS},
    {"verify", SETTING_FLAG, OPTION(player.verify)},
    {0},
};

static const char *const sessions[] = {"none", "resumed", "early_data", NULL}; /* sim_session_kind */

static const setting job_rows[] = {
    {"seed", SETTING_WHOLE, SETTING_FIELD(sim_job, seed), .most = INT64_MAX - SIM_MAX_PLAYERS},
    {"start_offset_ms", SETTING_WHOLE, SETTING_FIELD(sim_job, start_offset_ms), .most = UINT32_MAX},
    {"schema", SETTING_WHOLE, SETTING_FIELD(sim_job, schema), .least = 1, .most = 1},
    {"qlog", SETTING_FLAG, SETTING_FIELD(sim_job, qlog)},
    {"link_logs", SETTING_FLAG, SETTING_FIELD(sim_job, link_logs)},
    {"keylog", SETTING_FLAG, SETTING_FIELD(sim_job, keylog)},
    {"captures", SETTING_FLAG, SETTING_FIELD(sim_job, captures)},
    {"session", SETTING_CHOICE, SETTING_FIELD(sim_job, session), .words = sessions},
    {"null_crypto", SETTING_FLAG, SETTING_FIELD(sim_job, null_crypto)},
    {0},
};

/* Returns the tables of members of the job or of an entry of `players`. own: rows that only one of the two has. */
static setting_tables members_of(player_settings *s, const setting *own, void *into, settings_pass pass) {
    return (setting_tables){
        .table = {{own, into, 0}, {shared_rows, s, 0}, {quic_setting_rows, &s->player.options.settings, 0}},
        .count = 3,
        .pass = pass};
}

bool sim_members_read(const setting_tables *s, const json_t *object, const char *where, const char *const *also,
                      char *error) {
    char sentence[SETTINGS_ERROR_BYTES];
    if (settings_read_json(s, object, where, also, sentence))
        return true;
    const size_t len = strlen(sentence);
    return sim_fail(error, "%.*s", (int)(len > 0 && sentence[len - 1] == '.' ? len - 1 : len), sentence);
}

/* The context of parsing. */
typedef struct {
    sim_job *job;
    const char *name, *directory;
    char *error;
} parser;

xl_addr sim_link_addr(size_t number, uint8_t host, uint16_t port) {
    return (xl_addr){.family = 4, .ip = {100, (uint8_t)(64 + (number >> 8)), (uint8_t)number, host}, .port = port};
}

size_t sim_link_number(const sim_job *job, size_t set, size_t path) {
    return set * job->path_count + path;
}

size_t sim_path_links(const sim_job *job) {
    return job->path_count * job->player_count;
}

/* ---- paths ---- */

static bool is_path_name(const char *name) {
    size_t length = strlen(name);
    return length < SIM_NAME_BYTES && name[0] != '-' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static char *resolve(const char *directory, const char *file) {
    char *path = NULL;
    if (file[0] == '/' || directory[0] == '\0')
        return strdup(file);
    return asprintf(&path, "%s/%s", directory, file) >= 0 ? path : NULL;
}

/* Reads a setting of the link. Makes file names relative to the job's directory. */
static bool take_setting(parser *p, const char *where, link_settings *settings, const char *member, json_t *value) {
    char reason[SIM_ERROR_BYTES / 2];
    const char *text = json_string_value(value);
    json_t *resolved = NULL;
    uint64_t rate;
    if (link_settings_names_file(member) && text && text[0] != '\0' && !link_trace_parse_rate(text, &rate)) {
        char *file = resolve(p->directory, text);
        resolved = file ? json_string_nocheck(file) : NULL; /* names may hold any bytes */
        free(file);
        if (!resolved)
            return sim_fail(p->error, "out of memory");
    }
    bool good = link_settings_set_json(settings, member, resolved ? resolved : value, reason, sizeof reason);
    json_decref(resolved);
    return good || sim_fail(p->error, "%s%s", where, reason);
}

static bool take_technology(parser *p, const char *where, json_t *value, xl_technology *technology) {
    const char *text = json_string_value(value);
    return (text && technology_parse(text, technology)) ||
           sim_fail(p->error, "%stechnology takes one of " TECHNOLOGY_LIST, where);
}

/* The paths or the bottlenecks of a job. */
typedef struct {
    const char *member;
    size_t first; /* place in the job's paths */
    size_t *count;
    bool are_paths;
} path_list;

static bool take_path_name(parser *p, const char *where, size_t place, json_t *value) {
    const sim_job *job = p->job;
    const char *name = json_string_value(value);
    if (!name || strlen(name) != json_string_length(value) || !is_path_name(name))
        return sim_fail(p->error, "%sname takes at most 15 of a-z 0-9 -, not \"%.40s\"", where, name ? name : "this");
    for (size_t k = 0; k < place; k++)
        if (strcmp(job->paths[k].name, name) == 0)
            return sim_fail(p->error, "%sname \"%s\" is that of %s[%zu] too", where, name,
                            k < job->path_count ? "paths" : "bottlenecks",
                            k < job->path_count ? k : k - job->path_count);
    memcpy(p->job->paths[place].name, name, strlen(name) + 1);
    return true;
}

static bool take_path_member(parser *p, const char *where, const path_list *list, size_t i, const char *member,
                             json_t *value) {
    sim_path_job *path = &p->job->paths[list->first + i];
    if (json_is_null(value))
        return true;
    if (strcmp(member, "name") == 0)
        return take_path_name(p, where, list->first + i, value);
    if (list->are_paths && strcmp(member, "technology") == 0)
        return take_technology(p, where, value, &path->technology);
    return take_setting(p, where, path->settings, member, value);
}

static bool take_path(parser *p, const path_list *list, json_t *object, size_t i) {
    char where[SIM_ERROR_BYTES / 4], reason[SIM_ERROR_BYTES / 2];
    const char *member;
    json_t *value;
    snprintf(where, sizeof where, "%.200s: %s[%zu].", p->name, list->member, i);
    if (!json_is_object(object))
        return sim_fail(p->error, "%s: %s[%zu] is not an object", p->name, list->member, i);
    sim_path_job *path = &p->job->paths[list->first + i];
    *list->count = i + 1;
    path->technology = XL_TECH_UNKNOWN;
    json_object_foreach(object, member, value) {
        if (!take_path_member(p, where, list, i, member, value))
            return false;
    }
    if (path->name[0] == '\0')
        return sim_fail(p->error, "%sname is missing", where);
    return link_settings_check(path->settings, list->are_paths, reason, sizeof reason) ||
           sim_fail(p->error, "%s%s", where, reason);
}

static bool take_list(parser *p, const path_list *list, size_t most) {
    json_t *paths = json_object_get(p->job->json, list->member);
    size_t count = json_array_size(paths);
    if (!list->are_paths && (!paths || json_is_null(paths)))
        return true;
    if (count == 0 || count > most)
        return sim_fail(p->error, "%s: %s takes an array of 1 to %zu objects", p->name, list->member, most);
    for (size_t i = 0; i < count; i++)
        if (!take_path(p, list, json_array_get(paths, i), i))
            return false;
    return true;
}

static bool take_vias(parser *p) {
    sim_job *job = p->job;
    const char *names[LINK_BOTTLENECKS_MOST];
    char reason[SIM_ERROR_BYTES / 2];
    for (size_t b = 0; b < job->bottleneck_count; b++)
        names[b] = job->paths[job->path_count + b].name;
    for (size_t k = 0; k < job->path_count; k++) {
        sim_path_job *path = &job->paths[k];
        if (!link_vias_parse(path->via, path->settings, names, job->bottleneck_count, reason, sizeof reason))
            return sim_fail(p->error, "%s: paths[%zu].%s", p->name, k, reason);
    }
    return true;
}

static bool take_paths(parser *p) {
    sim_job *job = p->job;
    const path_list paths = {"paths", 0, &job->path_count, true};
    if (!take_list(p, &paths, SIM_MAX_PATHS))
        return false;
    const path_list bottlenecks = {"bottlenecks", job->path_count, &job->bottleneck_count, false};
    return take_list(p, &bottlenecks, LINK_BOTTLENECKS_MOST) && take_vias(p);
}

/* ---- players ---- */

static bool take_player_member(parser *p, json_t *object, const char *prefix, player_settings *s) {
    char where[SIM_ERROR_BYTES / 2];
    json_t *value = json_object_get(object, "player"), *events = json_object_get(object, "path_events");
    s->path_events = events ? events : s->path_events;
    if (!value || json_is_null(value))
        return true;
    if (!json_is_object(value))
        return sim_fail(p->error, "%s: %splayer is not an object", p->name, prefix);
    snprintf(where, sizeof where, "%s: %splayer.", p->name, prefix);
    const setting_tables members = {.table = {{play_rows, s, 0}}, .count = 1};
    return sim_members_read(&members, value, where, NULL, p->error);
}

/* Whether a path's link alone decides what happens to its packets, without bottlenecks, others' traffic and Wi-Fi. */
static bool may_foresee(const sim_job *job) {
    bool has_others = job->bottleneck_count > 0;
    for (size_t k = 0; k < job->path_count; k++)
        for (size_t way = 0; way < 2; way++)
            has_others = has_others || job->paths[k].settings[way].cross_profile ||
                         job->paths[k].settings[way].wifi.rate_bps > 0 ||
                         job->paths[k].settings[way].config.cross.rate_bps > 0;
    return !has_others;
}

static bool check_complete(const parser *p, const player_options *o, const char *prefix) {
    const char *missing = !o->settings.name              ? "scheme"
                          : o->player.time_limit_us == 0 ? "time_limit_s"
                          : o->size_bytes == 0           ? "player.video_bytes"
                          : o->bitrate_bps == 0          ? "player.bitrate_bps"
                          : o->player.chunk_bytes == 0   ? "player.chunk_bytes"
                                                         : NULL;
    if (missing)
        return sim_fail(p->error, "%s: %s is missing", p->name, missing);
    const char *problem = quic_settings_problem(&o->settings, true);
    if (!problem && xl_scheduler_is_reference(o->settings.scheme.scheduler) && !may_foresee(p->job))
        problem = "the scheduler knows what a path's link will do, but not bottlenecks, others' traffic and Wi-Fi";
    return !problem || sim_fail(p->error, "%s: %s%s", p->name, prefix, problem);
}

static void fill_server(sim_player_job *entry, const sim_job *job, size_t i) {
    const player_options *o = &entry->options;
    server_config *c = &entry->server;
    *c = (server_config){.settings = o->settings};
    c->quic_addr = sim_link_addr(0, SIM_SERVER_HOST, (uint16_t)(SIM_SERVER_PORT + i));
    c->seed = (random_seed){.given = true, .seed = job->seed + i};
    c->video.bitrate_bps = o->bitrate_bps;
    c->video.fps_milli = (uint32_t)o->fps_milli;
    c->video.first_frame_bytes = o->first_frame_bytes;
    c->null_crypto = job->null_crypto;
}

static void fill_transport(sim_player_job *entry, const sim_job *job, size_t i) {
    player_options *o = &entry->options;
    player_transport_config *c = &o->transport_config;
    c->server = entry->server.quic_addr;
    xl_addr_format(&c->server, o->authority, sizeof o->authority);
    snprintf(o->target, sizeof o->target, "/synthetic/%" PRIu64, o->size_bytes);
    c->authority = o->authority;
    c->target = o->target;
    c->concurrency = o->player.concurrency;
    c->settings = &o->settings;
    c->seed = entry->server.seed;
    c->insecure = true;
    c->null_crypto = job->null_crypto;
    c->path_count = job->path_count;
    for (size_t k = 0; k < job->path_count; k++) {
        player_path *path = &o->paths[k];
        memcpy(path->name, job->paths[k].name, SIM_NAME_BYTES);
        path->technology = job->paths[k].technology;
        path->local = sim_link_addr(sim_link_number(job, entry->own_links ? i : 0, k), SIM_CLIENT_HOST,
                                    (uint16_t)(SIM_CLIENT_PORT + i));
    }
}

/* Reads "T:ACTION:NAME,…", or an array of such strings. */
static bool fill_events(player_options *o, json_t *value, char *error, size_t cap) {
    size_t count = json_is_array(value) ? json_array_size(value) : value && !json_is_null(value);
    o->transport_config.path_events = o->path_events;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
        char reason[SIM_ERROR_BYTES / 4];
        if (!path_events_parse(text ? text : "", o->path_events, &o->transport_config.path_event_count, reason,
                               sizeof reason))
            return error_set(error, cap, "path_events %s", reason);
    }
    return true;
}

static bool fill_paths(player_options *o, json_t *path_events, char *error, size_t cap) {
    return fill_events(o, path_events, error, cap) &&
           player_options_choose_primary(o, o->primary, o->path_order, error, cap) &&
           player_options_check_events(o, error, cap);
}

static bool fill_keys(sim_player_job *entry) {
    server_config *serves = &entry->server;
    player_transport_config *plays = &entry->options.transport_config;
    return xl_random_key_from_seed(serves->seed.seed, "server", serves->random_key) == 0 &&
           xl_random_key_from_seed(plays->seed.seed, "client", plays->random_key) == 0;
}

/* Reads the job's settings, then those of one player. The schemes of both come before all other settings. */
static bool read_settings(parser *p, json_t *object, const char *where, player_settings *s) {
    char whole[SIM_ERROR_BYTES / 2];
    sim_job *job = p->job;
    snprintf(whole, sizeof whole, "%s: ", p->name);
    const settings_pass passes[] = {SETTINGS_BASES, SETTINGS_OTHERS};
    for (size_t i = 0; i < 2; i++) {
        const setting_tables of_job = members_of(s, job_rows, job, passes[i]);
        const setting_tables of_player = members_of(s, player_entry_rows, s, passes[i]);
        if (!sim_members_read(&of_job, job->json, whole, read_apart, p->error) ||
            (object && !sim_members_read(&of_player, object, where, read_apart_of_player, p->error)))
            return false;
    }
    return true;
}

/* Reads a player. object NULL: the only player, with the job's settings. */
static bool take_player(parser *p, const player_settings *base, json_t *object, size_t i) {
    player_settings s = *base;
    char where[SIM_ERROR_BYTES / 2], prefix[32] = "";
    if (object)
        snprintf(prefix, sizeof prefix, "players[%zu].", i);
    snprintf(where, sizeof where, "%s: %s", p->name, prefix);
    if (object && !json_is_object(object))
        return sim_fail(p->error, "%s: players[%zu] is not an object", p->name, i);
    if (!read_settings(p, object, where, &s) || (object && !take_player_member(p, object, prefix, &s)))
        return false;
    if (!check_complete(p, &s.player.options, prefix))
        return false;
    sim_player_job *entry = &p->job->players[i];
    player_options *o = &entry->options;
    *entry = s.player;
    entry->own_links = i > 0 && entry->own_links;
    fill_server(entry, p->job, i);
    fill_transport(entry, p->job, i);
    if (!fill_keys(entry))
        return sim_fail(p->error, "%s: no keys can be made from the seed", p->name);
    const char *problem = player_config_video(&o->player, o->size_bytes, o->bitrate_bps, o->fps_milli,
                                              o->first_frame_bytes, o->duration_us);
    if (problem)
        return sim_fail(p->error, "%s: %splayer: %s", p->name, prefix, problem);
    char reason[SIM_ERROR_BYTES / 2];
    return fill_paths(o, s.path_events, reason, sizeof reason) || sim_fail(p->error, "%s%s", where, reason);
}

static bool take_players(parser *p, const player_settings *base, json_t *players) {
    bool given = players && !json_is_null(players);
    size_t count = given ? json_array_size(players) : 1;
    if (count == 0 || count > SIM_MAX_PLAYERS)
        return sim_fail(p->error, "%s: players takes an array of 1 to %d objects", p->name, SIM_MAX_PLAYERS);
    p->job->players = calloc(count, sizeof *p->job->players);
    if (!p->job->players)
        return sim_fail(p->error, "out of memory");
    p->job->player_count = count;
    for (size_t i = 0; i < count; i++)
        if (!take_player(p, base, given ? json_array_get(players, i) : NULL, i))
            return false;
    return true;
}

/* ---- the whole ---- */

/* Whether any of these paths, bottlenecks or events has an MTU. */
static bool names_mtu(const json_t *objects) {
    static const char *const members[] = {"mtu", "up_mtu", "down_mtu"};
    for (size_t i = 0; i < json_array_size(objects); i++)
        for (size_t k = 0; k < sizeof members / sizeof members[0]; k++)
            if (json_object_get(json_array_get(objects, i), members[k]))
                return true;
    return false;
}

static bool take_job(parser *p) {
    player_settings base = {.path_events = NULL};
    sim_job *job = p->job;
    xl_limits *limits = &base.player.options.settings.limits;
    player_options_init(&base.player.options);
    /* Links mark no packets, so ECN is off. Links without an MTU carry the largest packets, so there is nothing to
     * probe. Processor time is not simulated, so pacing has no bursts beyond ten packets. */
    limits->enable_ecn = limits->grease = false;
    limits->pacing_burst_us = 0;
    if (!names_mtu(json_object_get(job->json, "paths")) && !names_mtu(json_object_get(job->json, "bottlenecks")) &&
        !names_mtu(json_object_get(job->json, "link_events")))
        limits->path_mtu_bytes = limits->max_udp_payload_bytes;
    job->seed = 1;
    job->link_logs = true;
    char where[SIM_ERROR_BYTES / 2];
    snprintf(where, sizeof where, "%s: ", p->name);
    return read_settings(p, NULL, where, &base) && take_paths(p) && take_player_member(p, job->json, "", &base) &&
           take_players(p, &base, json_object_get(job->json, "players")) &&
           sim_events_parse(job, json_object_get(job->json, "link_events"), p->name, p->error);
}

bool sim_job_parse(sim_job *job, const char *text, size_t length, const char *name, const char *directory,
                   char *error) {
    json_error_t where;
    parser p = {.job = job, .name = name, .directory = directory, .error = error};
    *job = (sim_job){.json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where)};
    if (!job->json) {
        make_printable(where.text);
        return sim_fail(error, "%s:%d: not JSON: %s", name, where.line, where.text);
    }
    if (!json_is_object(job->json))
        return sim_fail(error, "%s: a job is a JSON object", name);
    return take_job(&p);
}

void sim_job_free(sim_job *job) {
    for (size_t i = 0; i < job->path_count + job->bottleneck_count; i++)
        link_settings_free(job->paths[i].settings);
    free(job->players);
    free(job->events);
    json_decref(job->json);
    *job = (sim_job){0};
}
