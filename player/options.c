#include "player/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/technology.h"
#include "base/net.h"

#define DAY_MS            UINT64_C(86400000)
#define DEFAULT_FPS_MILLI 30000
#define PATH_TEXT_BYTES   160

/* ---- Settings with their own syntax ---- */

static bool check_path_name(const player_options *o, const char *name, char *reason, size_t cap) {
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(name))
        return error_set(reason, cap, "'%s': a name may hold letters, digits, '.', '_' and '-' only", name);
    for (size_t i = 0; i < o->transport_config.path_count; i++)
        if (strcmp(o->paths[i].name, name) == 0)
            return error_set(reason, cap, "gives two paths the name '%s'", name);
    return true;
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    player_options *o = into;
    player_transport_config *c = &o->transport_config;
    char copy[PATH_TEXT_BYTES], *address = NULL, *technology = NULL;
    if (c->path_count == PLAYER_MAX_PATHS)
        return error_set(reason, cap, "may be given %d times", PLAYER_MAX_PATHS);
    snprintf(copy, sizeof copy, "%s", text);
    if (strlen(text) >= sizeof copy || !path_split(copy, &address, &technology) || strlen(copy) >= PLAYER_NAME_BYTES)
        return error_set(reason, cap, "takes NAME:LOCALADDR[:TECH], not '%.60s'", text);
    player_path *path = &o->paths[c->path_count];
    *path = (player_path){.technology = XL_TECH_UNKNOWN};
    if (technology && !technology_parse(technology, &path->technology))
        return error_set(reason, cap, "takes one of " TECHNOLOGY_LIST " as technology, not '%s'", technology);
    if (!check_path_name(o, copy, reason, cap) || !net_parse_local(address, &path->local, reason, cap))
        return false;
    memcpy(path->name, copy, strlen(copy) + 1);
    c->path_count++;
    return true;
}

static bool read_path_event(void *into, const char *text, char *reason, size_t cap) {
    player_options *o = into;
    return path_events_parse(text, o->path_events, &o->transport_config.path_event_count, reason, cap);
}

static bool read_transport(void *into, const char *text, char *reason, size_t cap) {
    player_options *o = into;
    o->transport = player_transport_find(text);
    if (o->transport)
        return true;
    snprintf(reason, cap, "takes ");
    for (size_t i = 0; player_transports[i]; i++)
        snprintf(reason + strlen(reason), cap - strlen(reason), "%s%s", i > 0 ? ", " : "", player_transports[i]->name);
    snprintf(reason + strlen(reason), cap - strlen(reason), ", not '%.60s'", text);
    return false;
}

/* ---- The table ---- */

#define FIELD(member) SETTING_FIELD(player_options, member)
#define BYTES(member) SETTING_WHOLE, FIELD(member), .least = 1, .most = VIDEO_MAX_BYTES, .value = "BYTES"
#define MS(member)    SETTING_DECIMAL, FIELD(member), .most = DAY_MS * 1000, .value = "MS"
#define SECONDS(member)                                                                                                \
    SETTING_DECIMAL, FIELD(member), .least = 1, .most = DAY_MS, .scale = 1000,                                         \
                                    .value = "S" /* thousandths * 1000 = µs */

static const setting rows[] = {
    {"transport", SETTING_OWN, .read = read_transport, .value = "quic|tcp|mptcp|stream",
     .help = "Transport of the requests."},
    {"server", SETTING_TEXT, FIELD(server_text), .value = "ADDR:PORT",
     .help = "Address of the server. @:PORT is the gateway of mpshell. With --transport stream: unix:FILE, the socket "
             "of a relay."},
    {"path", SETTING_OWN, .read = read_path, .value = "NAME:LOCALADDR[:TECH]",
     .help = "A path: name, local address (@I: path I of mpshell), technology (" TECHNOLOGY_LIST ")."},
    {"primary", SETTING_TEXT, FIELD(primary), .value = "NAME",
     .help = "Primary path. Default: the first technology in --path-order."},
    {"path_order", SETTING_TEXT, FIELD(path_order), .value = "TECH,TECH,...",
     .help = "Order of technologies for the primary path. The others follow in the default order. Default: "
             "5g-sa,5g-nsa,wifi,lte."},
    {"path_events", SETTING_OWN, .read = read_path_event, .value = "T:ACTION:NAME",
     .help = "Change a path after T seconds: add, remove, standby or available. Separate several events by commas."},
    {"url", SETTING_TEXT, FIELD(url), .value = "PATH", .help = "Path of the video, for example /synthetic/20000000."},
    {"size", BYTES(size_bytes), .help = "Size of the video, if the URL is not /synthetic/BYTES."},
    {"chunk_bytes", BYTES(player.chunk_bytes), .help = "Size of a request."},
    {"concurrency", SETTING_WHOLE, FIELD(player.concurrency), .least = 1, .most = PLAYER_MAX_CONCURRENCY, .value = "N",
     .fallback = "1", .help = "Number of requests open at the same time."},
    {"bitrate", SETTING_WHOLE, FIELD(bitrate_bps), .least = 1, .most = VIDEO_MAX_BITRATE_BPS, .value = "BPS",
     .help = "Bit rate of the video."},
    {"fps", SETTING_DECIMAL, FIELD(fps_milli), .least = 1, .most = VIDEO_MAX_FPS_MILLI, .value = "F", .fallback = "30",
     .help = "Frames per second."},
    {"first_frame_bytes", BYTES(first_frame_bytes), .fallback = "the size of four average frames",
     .help = "Size of the first frame."},
    {"startup_buffer_ms", MS(player.startup_buffer_us), .fallback = "the first frame",
     .help = "Play time to buffer before playing starts."},
    {"rebuffer_target_ms", MS(player.rebuffer_target_us), .fallback = "500",
     .help = "Play time to buffer before playing continues after a stall."},
    {"max_buffer_ms", MS(player.max_buffer_us), .fallback = "10000",
     .help = "Play time at which the player stops requesting."},
    {"duration", SECONDS(duration_us), .help = "Play only this much of the video."},
    {"videos", SETTING_WHOLE, FIELD(player.videos), .least = 1, .most = PLAYER_MAX_VIDEOS, .value = "N",
     .fallback = "1", .help = "Number of videos to play over the connection, one after the other."},
    {"time_limit", SECONDS(player.time_limit_us),
     .help = "End the run after this time, even if the video is not finished."},
    {"verify", SETTING_FLAG, FIELD(player.verify),
     .help = "Compare every byte of a synthetic video with its expected value."},
    {"ca", SETTING_TEXT, FIELD(transport_config.ca_file), .value = "FILE",
     .help = "Verify the server's certificate against the CA certificates in FILE (PEM)."},
    {"session", SETTING_TEXT, FIELD(transport_config.session_file), .value = "FILE",
     .help = "QUIC: resume the TLS session in FILE, and save the newest one there. It holds secrets."},
    {"early_data", SETTING_FLAG, FIELD(transport_config.early_data),
     .help = "QUIC: where a session is resumed, send the first requests in the first packets (0-RTT)."},
    {"insecure", SETTING_FLAG, FIELD(transport_config.insecure), .help = "Do not verify the server's certificate."},
    {"seed", SETTING_OWN, FIELD(transport_config.seed), .read = random_seed_read, .value = "N",
     .help = "Derive all random choices, keys and secrets from N, so that runs can be repeated. Not for deployment."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE.jsonl", .help = "Write events and a summary as JSON Lines."},
    {"save", SETTING_TEXT, FIELD(save_file), .value = "FILE", .help = "Write the video to FILE."},
    {"qlog_dir", SETTING_TEXT, FIELD(transport_config.qlog_dir), .value = "DIR",
     .help = "Write a qlog of the connection."},
    {"keylog", SETTING_TEXT, FIELD(transport_config.keylog_file), .value = "FILE",
     .help = "Append TLS secrets in NSS key log format."},
    {0},
};

void player_options_print_usage(void) {
    printf("usage: xlink-player --transport quic|tcp|mptcp|stream --server ADDR:PORT|unix:FILE\n"
           "                    --path NAME:LOCALADDR[:TECH] [--path ...]\n"
           "                    --url /synthetic/BYTES --chunk-bytes N --bitrate BPS --time-limit S\n"
           "                    --out FILE.jsonl\n");
    settings_help(stdout, rows, 0);
    printf("For --transport quic:\n");
    settings_help(stdout, quic_setting_rows, SETTING_OF_PLAYER);
}

/* ---- Checks after all options are read ---- */

#define fail(error, ...) error_set(error, SETTINGS_ERROR_BYTES, __VA_ARGS__)

static bool check_required(const player_options *o, char *error) {
    const struct {
        bool given;
        const char *option;
    } required[] = {
        {o->transport != NULL, "transport"},          {o->server_text, "server"},
        {o->transport_config.path_count > 0, "path"}, {o->url, "url"},
        {o->player.chunk_bytes > 0, "chunk-bytes"},   {o->bitrate_bps > 0, "bitrate"},
        {o->player.time_limit_us > 0, "time-limit"},  {o->out_file != NULL, "out"},
    };
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!required[i].given)
            return fail(error, "--%s is required; see --help.", required[i].option);
    return true;
}

static bool check_server(player_options *o, char *error) {
    static const char prefix[] = "unix:";
    char reason[SETTINGS_ERROR_BYTES / 2];
    player_transport_config *c = &o->transport_config;
    const bool is_file = strncmp(o->server_text, prefix, strlen(prefix)) == 0;
    const bool wants_file = o->transport->uses_socket_file;
    if (is_file != wants_file || (is_file && o->server_text[strlen(prefix)] == '\0'))
        return fail(error, "--server takes %s with --transport %s, not '%s'.", wants_file ? "unix:FILE" : "ADDR:PORT",
                    o->transport->name, o->server_text);
    if (is_file) {
        c->socket_file = o->server_text + strlen(prefix);
        c->authority = "localhost";
        return true;
    }
    if (!net_read_gateway(&c->server, o->server_text, reason, sizeof reason))
        return fail(error, "--server %s.", reason);
    if (c->server.port == 0)
        return fail(error, "--server needs a port from 1 on, not '%s'.", o->server_text);
    xl_addr_format(&c->server, o->authority, sizeof o->authority);
    c->authority = o->authority;
    return true;
}

static bool check_scheme(player_options *o, char *error) {
    const quic_settings *settings = &o->settings;
    const player_transport_ops *transport = o->transport;
    const char *problem = quic_settings_problem(settings, false);
    if (!transport->has_schemes && (settings->name || settings->scheme.scheduler || settings->scheme.cc))
        return fail(error, "--%s is for --transport quic and means nothing to %s; leave it out.",
                    settings->name               ? "scheme"
                    : settings->scheme.scheduler ? "scheduler"
                                                 : "cc",
                    transport->name);
    if (transport->has_schemes && !settings->name)
        return fail(error, "--transport %s needs --scheme; see --help.", transport->name);
    return !problem || fail(error, "%s.", problem);
}

bool player_options_choose_primary(player_options *o, const char *primary, const char *order, char *error, size_t cap) {
    player_path *paths = o->paths;
    unsigned rank[XL_TECH_UNKNOWN + 1] = {0, 1, 2, 3, 4};
    size_t count = o->transport_config.path_count, chosen = 0;
    if (order && !path_order_parse(order, rank, error, cap))
        return false;
    for (size_t i = 0; i < count; i++)
        if (primary ? strcmp(paths[i].name, primary) == 0 : rank[paths[i].technology] < rank[paths[chosen].technology])
            chosen = i;
    if (primary && strcmp(paths[chosen].name, primary) != 0) {
        char known[(PLAYER_NAME_BYTES + 2) * PLAYER_MAX_PATHS] = "";
        for (size_t i = 0; i < count; i++) {
            size_t used = strlen(known);
            (void)snprintf(known + used, sizeof known - used, "%s%.31s", i > 0 ? ", " : "", paths[i].name);
        }
        return error_set(error, cap, "no path is named '%.40s', the primary one; known are %s", primary, known);
    }
    player_path first = paths[chosen];
    memmove(paths + 1, paths, chosen * sizeof *paths);
    paths[0] = first;
    o->transport_config.paths = paths;
    return true;
}

bool player_options_check_events(const player_options *o, char *error, size_t cap) {
    const player_transport_config *c = &o->transport_config;
    for (size_t i = 0; i < c->path_event_count; i++) {
        size_t k = 0;
        while (k < c->path_count && strcmp(o->paths[k].name, o->path_events[i].name) != 0)
            k++;
        if (k == c->path_count)
            return error_set(error, cap, "a path event names '%s', and no path has that name", o->path_events[i].name);
    }
    if (c->path_event_count > 0 && !quic_settings_are_multipath(&o->settings))
        return error_set(error, cap, "path events need a scheme that uses several paths at a time");
    if (path_events_add_later(o->path_events, c->path_event_count, o->paths[0].name))
        return error_set(error, cap, "the primary path '%s' cannot be added later; name another one as primary",
                         o->paths[0].name);
    return true;
}

/* Chooses the primary path and checks the path events. */
static bool check_paths(player_options *o, char *error) {
    char reason[256];
    player_transport_config *c = &o->transport_config;
    c->path_events = o->path_events;
    bool ok = player_options_choose_primary(o, o->primary, o->path_order, reason, sizeof reason) &&
              player_options_check_events(o, reason, sizeof reason);
    return ok || fail(error, "%s.", reason);
}

static bool check_url(player_options *o, char *error) {
    size_t len = strlen(o->url);
    if (o->url[0] != '/' || len >= sizeof o->target)
        return fail(error, "--url takes the path of a resource that begins with '/', not '%s'.", o->url);
    for (size_t i = 0; i < len; i++)
        if (o->url[i] <= ' ' || o->url[i] > '~')
            return fail(error, "--url holds a character that must be percent-encoded.");
    memcpy(o->target, o->url, len + 1);
    o->transport_config.target = o->target;
    uint64_t bytes = 0;
    if (strncmp(o->url, "/synthetic/", 11) == 0) {
        if (!video_synthetic_parse(o->url, len, &bytes))
            return fail(error, "'%s' is not /synthetic/BYTES with a whole number of bytes.", o->url);
        if (o->size_bytes != 0 && o->size_bytes != bytes)
            return fail(error, "--size and --url disagree about the size of the video.");
        o->size_bytes = bytes;
        return true;
    }
    if (o->size_bytes == 0)
        return fail(error, "--size is required, because the URL does not give the size of the video.");
    return !o->player.verify || fail(error, "--verify works with /synthetic/BYTES only.");
}

static bool check_video(player_options *o, char *error) {
    const char *problem = player_config_video(&o->player, o->size_bytes, o->bitrate_bps, o->fps_milli,
                                              o->first_frame_bytes, o->duration_us);
    return !problem || fail(error, "%s.", problem);
}

void player_options_init(player_options *o) {
    *o = (player_options){
        .player = {.concurrency = 1,
                   .rebuffer_target_us = PLAYER_REBUFFER_TARGET_US,
                   .max_buffer_us = PLAYER_MAX_BUFFER_US,
                   .report_interval_us = PLAYER_REPORT_INTERVAL_US},
        .fps_milli = DEFAULT_FPS_MILLI,
    };
    quic_settings_init(&o->settings);
}

bool player_options_parse(int argc, char **argv, player_options *out, char *error) {
    player_options_init(out);
    out->transport_config.settings = &out->settings;
    const setting_tables s = {.table = {{rows, out, 0}, {quic_setting_rows, &out->settings, SETTING_OF_PLAYER}},
                              .count = 2};
    if (!settings_read_args(&s, argc, argv, &out->help, NULL, error) || out->help)
        return out->help;
    bool ok = check_required(out, error) && check_server(out, error) && check_scheme(out, error) &&
              check_paths(out, error) && check_url(out, error) && check_video(out, error);
    out->transport_config.concurrency = out->player.concurrency;
    return ok;
}
