#include "player/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http1.h"
#include "http/net.h"
#include "http/quic_scheme.h"
#include "http/reinjection_options.h"

enum {
    OPT_TRANSPORT = 256,
    OPT_SCHEME,
    OPT_SERVER,
    OPT_PATH,
    OPT_PRIMARY,
    OPT_PATH_ORDER,
    OPT_PATH_EVENT,
    OPT_PATH_MANAGEMENT,
    OPT_MIGRATE_AFTER,
    OPT_MIGRATE_BACK,
    OPT_URL,
    OPT_SIZE,
    OPT_CHUNK_BYTES,
    OPT_CONCURRENCY,
    OPT_BITRATE,
    OPT_FPS,
    OPT_FIRST_FRAME_BYTES,
    OPT_STARTUP_BUFFER_MS,
    OPT_REBUFFER_TARGET_MS,
    OPT_MAX_BUFFER_MS,
    OPT_DURATION,
    OPT_VIDEOS,
    OPT_TIME_LIMIT,
    OPT_VERIFY,
    OPT_INSECURE,
    OPT_CA,
    OPT_ACK_PATH,
    OPT_SCHEDULER,
    OPT_CC,
    OPT_QOE,
    OPT_SEED,
    OPT_OUT,
    OPT_QLOG_DIR,
    OPT_KEYLOG,
    OPT_SAVE,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"transport", required_argument, NULL, OPT_TRANSPORT},
    {"scheme", required_argument, NULL, OPT_SCHEME},
    {"server", required_argument, NULL, OPT_SERVER},
    {"path", required_argument, NULL, OPT_PATH},
    {"primary", required_argument, NULL, OPT_PRIMARY},
    {"path-order", required_argument, NULL, OPT_PATH_ORDER},
    {"path-event", required_argument, NULL, OPT_PATH_EVENT},
    {"path-events", required_argument, NULL, OPT_PATH_EVENT},
    {"path-management", required_argument, NULL, OPT_PATH_MANAGEMENT},
    {"migrate-after", required_argument, NULL, OPT_MIGRATE_AFTER},
    {"migrate-back", required_argument, NULL, OPT_MIGRATE_BACK},
    {"url", required_argument, NULL, OPT_URL},
    {"size", required_argument, NULL, OPT_SIZE},
    {"chunk-bytes", required_argument, NULL, OPT_CHUNK_BYTES},
    {"concurrency", required_argument, NULL, OPT_CONCURRENCY},
    {"bitrate", required_argument, NULL, OPT_BITRATE},
    {"fps", required_argument, NULL, OPT_FPS},
    {"first-frame-bytes", required_argument, NULL, OPT_FIRST_FRAME_BYTES},
    {"startup-buffer-ms", required_argument, NULL, OPT_STARTUP_BUFFER_MS},
    {"rebuffer-target-ms", required_argument, NULL, OPT_REBUFFER_TARGET_MS},
    {"max-buffer-ms", required_argument, NULL, OPT_MAX_BUFFER_MS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
    {"videos", required_argument, NULL, OPT_VIDEOS},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {"insecure", no_argument, NULL, OPT_INSECURE},
    {"ca", required_argument, NULL, OPT_CA},
    {"ack-path", required_argument, NULL, OPT_ACK_PATH},
    {"scheduler", required_argument, NULL, OPT_SCHEDULER},
    {"cc", required_argument, NULL, OPT_CC},
    {"qoe", required_argument, NULL, OPT_QOE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"out", required_argument, NULL, OPT_OUT},
    {"qlog-dir", required_argument, NULL, OPT_QLOG_DIR},
    {"keylog", required_argument, NULL, OPT_KEYLOG},
    {"save", required_argument, NULL, OPT_SAVE},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

const char *player_options_usage(void) {
    return "usage: xlink-player --transport quic|tcp|mptcp --server ADDR:PORT --path NAME:LOCALADDR[:TECH] [--path "
           "...]\n"
           "                    --url /synthetic/BYTES --chunk-bytes N --bitrate BPS --time-limit S --out FILE.jsonl\n"
           "  --scheme sp|cm|vanilla-mp|xlink|xlink+  what the quic transport does with its paths\n"
           "  --server @:PORT                   the gateway of mpshell; --path NAME:@I: address of its path I\n"
           "  --primary NAME                    the path to start on; else 5g-sa > 5g-nsa > wifi > lte\n"
           "  --path-order TECH,TECH,...        another order, e.g. wifi,5g-sa\n"
           "  --path-event T:ACTION:NAME        after T seconds add, remove, standby or available; may be repeated "
           "(quic)\n"
           "  --path-management off|on[,...]    standby and abandon by themselves (quic; off): docs/paths.md\n"
           "  --migrate-after silence|silence:MS|ptos:N, --migrate-back never|S\n"
           "                                    of --scheme cm: docs/paths.md\n"
           "  --size BYTES                      size of the video when the URL is not /synthetic/BYTES\n"
           "  --concurrency K                   requests at a time (1)\n"
           "  --fps F                           frames per second (30)\n"
           "  --first-frame-bytes N             size of the first frame (four frames' worth)\n"
           "  --startup-buffer-ms MS            play time to buffer before the start (only the first frame)\n"
           "  --rebuffer-target-ms MS           play time to buffer before going on after a stall (500)\n"
           "  --max-buffer-ms MS                play time to buffer at most (10000)\n"
           "  --duration S                      play only so much of the video\n"
           "  --videos N                        so many videos like this one, one after the other (1)\n"
           "  --time-limit S                    end the run then, whatever the state\n"
           "  --verify                          check every byte of a synthetic video\n"
           "  --insecure | --ca FILE            do not verify the server's certificate, or against these\n"
           "  --ack-path original|fastest       path of ACK_MP (quic)\n"
           "  --scheduler NAME, --cc NAME       of what the player sends, its requests (quic): docs/schedulers.md\n"
           "  --qoe ack|signals|both|off        what carries the player's state to the server (quic; ack)\n"
           "  --seed N                          random choices and keys follow from N: a run to repeat, not for "
           "deployment\n"
           "  --out FILE.jsonl                  events and summary; --save FILE: the video's bytes\n"
           "  --qlog-dir DIR, --keylog FILE     logs of the quic transport\n";
}

/* What has been read so far; `error` holds the first thing that is wrong. */
typedef struct {
    player_options *o;
    char *error;
    size_t cap;
    const char *server, *primary, *path_order, *url, *scheme;
    uint64_t bitrate, fps_milli, first_frame_bytes, size, duration_us;
} parser;

__attribute__((format(printf, 2, 3))) static bool fail(parser *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->error, p->cap, format, args);
    va_end(args);
    return false;
}

static bool parse_integer(parser *p, const char *option, const char *text, uint64_t least, uint64_t most,
                          uint64_t *out) {
    if (!http1_parse_number(text, strlen(text), out) || *out < least || *out > most) {
        return fail(p, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'.", option, least, most,
                    text);
    }
    return true;
}

/* Decimal text in a unit of that many microseconds. */
static bool parse_time(parser *p, const char *option, const char *text, uint64_t us_per_unit, uint64_t *out_us) {
    uint64_t milli = 0;
    if (!video_parse_milli(text, &milli) || milli > UINT64_C(1000000000000)) {
        return fail(p, "--%s takes a number with at most three decimals, not '%s'.", option, text);
    }
    *out_us = milli * us_per_unit / 1000;
    return true;
}

static bool parse_technology(const char *text, xl_technology *out) {
    static const char *const names[] = {"5g-sa", "5g-nsa", "wifi", "lte"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (xl_technology)i;
            return true;
        }
    }
    return false;
}

/* "@I" stands for $MPSHELL_PATH_<I>_ADDR. */
static bool parse_local(parser *p, const char *text, xl_addr *out) {
    char variable[48];
    const char *ip = text;
    if (text[0] == '@') {
        uint64_t index = 0;
        if (!http1_parse_number(text + 1, strlen(text + 1), &index) || index >= 1000) {
            return fail(p, "'%s' is not a path of mpshell; write @0, @1 and so on.", text);
        }
        snprintf(variable, sizeof variable, "MPSHELL_PATH_%" PRIu64 "_ADDR", index);
        ip = getenv(variable);
        if (ip == NULL) {
            return fail(p, "'%s' needs $%s, which mpshell sets; give an IP address outside of mpshell.", text,
                        variable);
        }
    }
    return net_parse_ip(ip, out) || fail(p, "'%s' is not an IP address.", ip);
}

/* Cuts NAME:LOCALADDR[:TECH] into its parts, *technology NULL when it is not there; an IPv6 address stands in brackets.
 */
static bool split_path(char *text, char **address, char **technology) {
    char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || colon - text >= PLAYER_NAME_BYTES) {
        return false;
    }
    *colon = '\0';
    *address = colon + 1;
    char *end = *address;
    if (**address == '[') {
        end = strchr(++*address, ']');
        if (end == NULL || (end[1] != ':' && end[1] != '\0')) {
            return false;
        }
        *end++ = '\0';
    } else {
        end += strcspn(end, ":");
    }
    *technology = *end == ':' ? end + 1 : NULL;
    *end = '\0';
    return true;
}

static bool check_path_name(parser *p, const char *name) {
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(name)) {
        return fail(p, "the name '%s' of a path may hold letters, digits, '.', '_' and '-' only.", name);
    }
    for (size_t i = 0; i < p->o->transport_config.path_count; i++) {
        if (strcmp(p->o->paths[i].name, name) == 0) {
            return fail(p, "two paths have the name '%s'.", name);
        }
    }
    return true;
}

static bool parse_path(parser *p, const char *text) {
    player_transport_config *c = &p->o->transport_config;
    char copy[160], *address = NULL, *technology = NULL;
    if (c->path_count == PLAYER_MAX_PATHS) {
        return fail(p, "at most %d paths are possible.", PLAYER_MAX_PATHS);
    }
    snprintf(copy, sizeof copy, "%s", text);
    if (strlen(text) >= sizeof copy || !split_path(copy, &address, &technology)) {
        return fail(p, "--path takes NAME:LOCALADDR[:TECH], not '%s'.", text);
    }
    player_path *path = &p->o->paths[c->path_count];
    *path = (player_path){.technology = XL_TECH_UNKNOWN};
    if (technology != NULL && !parse_technology(technology, &path->technology)) {
        return fail(p, "'%s' is not a technology; known are 5g-sa, 5g-nsa, wifi, lte.", technology);
    }
    if (!check_path_name(p, copy) || !parse_local(p, address, &path->local)) {
        return false;
    }
    memcpy(path->name, copy, strlen(copy) + 1);
    c->path_count++;
    return true;
}

static bool parse_ack_path(parser *p, const char *text) {
    if (strcmp(text, "original") != 0 && strcmp(text, "fastest") != 0) {
        return fail(p, "--ack-path is original or fastest, not '%s'.", text);
    }
    p->o->transport_config.ack_path = text[0] == 'f' ? XL_ACK_FASTEST : XL_ACK_ORIGINAL;
    return true;
}

static bool parse_qoe(parser *p, const char *text) {
    for (size_t i = 0; qoe_carriers[i] != NULL; i++) {
        if (strcmp(text, qoe_carriers[i]) == 0) {
            p->o->transport_config.qoe = qoe_carriers[i];
            return true;
        }
    }
    return fail(p, "--qoe is ack, signals, both or off, not '%s'.", text);
}

/* Scheduler and congestion controller of what is sent; NULL leaves one as it is. */
static bool parse_sender(parser *p, const char *scheduler, const char *congestion) {
    player_transport_config *c = &p->o->transport_config;
    xl_scheme checked = {0};
    char reason[192];
    if (!quic_scheme_override(scheduler, congestion, &checked, reason, sizeof reason)) {
        return fail(p, "%s.", reason);
    }
    c->scheduler = scheduler != NULL ? checked.scheduler : c->scheduler;
    c->congestion = congestion != NULL ? checked.congestion : c->congestion;
    return true;
}

static bool parse_transport(parser *p, const char *text) {
    p->o->transport = player_transport_find(text);
    if (p->o->transport != NULL) {
        return true;
    }
    char known[96] = "";
    for (size_t i = 0; player_transport_at(i) != NULL; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 player_transport_at(i)->name);
    }
    return fail(p, "'%s' is not a transport; known are %s.", text, known);
}

static bool parse_fps(parser *p, const char *text) {
    if (!video_parse_milli(text, &p->fps_milli) || p->fps_milli == 0 || p->fps_milli > VIDEO_MAX_FPS_MILLI) {
        return fail(p, "--fps takes a number from 0.001 to 1000 with at most three decimals, not '%s'.", text);
    }
    return true;
}

/* Options of the play. */
static bool take_play_option(parser *p, int option, const char *value) {
    player_config *c = &p->o->player;
    uint64_t n = 0;
    switch (option) {
    case OPT_SIZE:
        return parse_integer(p, "size", value, 1, VIDEO_MAX_BYTES, &p->size);
    case OPT_CHUNK_BYTES:
        return parse_integer(p, "chunk-bytes", value, 1, VIDEO_MAX_BYTES, &c->chunk_bytes);
    case OPT_CONCURRENCY:
        if (!parse_integer(p, "concurrency", value, 1, PLAYER_MAX_CONCURRENCY, &n)) {
            return false;
        }
        c->concurrency = (unsigned)n;
        return true;
    case OPT_BITRATE:
        return parse_integer(p, "bitrate", value, 1, VIDEO_MAX_BITRATE_BPS, &p->bitrate);
    case OPT_FPS:
        return parse_fps(p, value);
    case OPT_FIRST_FRAME_BYTES:
        return parse_integer(p, "first-frame-bytes", value, 1, VIDEO_MAX_BYTES, &p->first_frame_bytes);
    case OPT_STARTUP_BUFFER_MS:
        return parse_time(p, "startup-buffer-ms", value, 1000, &c->startup_buffer_us);
    case OPT_REBUFFER_TARGET_MS:
        return parse_time(p, "rebuffer-target-ms", value, 1000, &c->rebuffer_target_us);
    case OPT_MAX_BUFFER_MS:
        return parse_time(p, "max-buffer-ms", value, 1000, &c->max_buffer_us);
    case OPT_DURATION:
        return parse_time(p, "duration", value, 1000000, &p->duration_us) &&
               (p->duration_us > 0 || fail(p, "--duration must be greater than zero."));
    case OPT_VIDEOS:
        return parse_integer(p, "videos", value, 1, PLAYER_MAX_VIDEOS, &c->videos);
    case OPT_TIME_LIMIT:
        return parse_time(p, "time-limit", value, 1000000, &c->time_limit_us) &&
               (c->time_limit_us > 0 || fail(p, "--time-limit must be greater than zero."));
    default:
        c->verify = true;
        return true;
    }
}

/* Options of the paths. They are checked once all of them are known. */
static bool take_path_option(parser *p, int option, const char *value) {
    player_transport_config *c = &p->o->transport_config;
    char error[160];
    switch (option) {
    case OPT_PATH:
        return parse_path(p, value);
    case OPT_PRIMARY:
        p->primary = value;
        return true;
    case OPT_PATH_ORDER:
        p->path_order = value;
        return true;
    case OPT_PATH_EVENT:
        return path_events_parse(value, p->o->path_events, &c->path_event_count, error, sizeof error) ||
               fail(p, "%s.", error);
    case OPT_PATH_MANAGEMENT:
        c->path_options.management = value;
        return true;
    case OPT_MIGRATE_AFTER:
        c->path_options.migrate_after = value;
        return true;
    default:
        c->path_options.migrate_back = value;
        return true;
    }
}

/* Options of the transport, and files. */
static bool take_option(parser *p, int option, const char *value) {
    player_transport_config *c = &p->o->transport_config;
    switch (option) {
    case OPT_TRANSPORT:
        return parse_transport(p, value);
    case OPT_SCHEME:
        c->scheme = value;
        return true;
    case OPT_SERVER:
        p->server = value;
        return true;
    case OPT_PATH:
    case OPT_PRIMARY:
    case OPT_PATH_ORDER:
    case OPT_PATH_EVENT:
    case OPT_PATH_MANAGEMENT:
    case OPT_MIGRATE_AFTER:
    case OPT_MIGRATE_BACK:
        return take_path_option(p, option, value);
    case OPT_URL:
        p->url = value;
        return true;
    case OPT_INSECURE:
        c->insecure = true;
        return true;
    case OPT_CA:
        c->ca_file = value;
        return true;
    case OPT_ACK_PATH:
        return parse_ack_path(p, value);
    case OPT_SCHEDULER:
        return parse_sender(p, value, NULL);
    case OPT_CC:
        return parse_sender(p, NULL, value);
    case OPT_QOE:
        return parse_qoe(p, value);
    case OPT_SEED:
        c->seed.given = true;
        return parse_integer(p, "seed", value, 0, INT64_MAX, &c->seed.seed);
    case OPT_OUT:
        p->o->out_file = value;
        return true;
    case OPT_QLOG_DIR:
        c->qlog_dir = value;
        return true;
    case OPT_KEYLOG:
        c->keylog_file = value;
        return true;
    case OPT_SAVE:
        p->o->save_file = value;
        return true;
    case OPT_HELP:
        p->o->help = true;
        return true;
    default:
        return take_play_option(p, option, value);
    }
}

static bool read_arguments(parser *p, int argc, char **argv) {
    opterr = 0;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == ':') {
            return fail(p, "%s needs a value; see --help.", argv[optind - 1]);
        }
        if (option == '?') {
            return fail(p, "unknown option '%s'; see --help.", argv[optind - 1]);
        }
        if (!take_option(p, option, optarg)) {
            return false;
        }
    }
    return optind == argc || fail(p, "unexpected argument '%s'; see --help.", argv[optind]);
}

static bool check_required(parser *p) {
    const player_options *o = p->o;
    const struct {
        bool given;
        const char *option;
    } required[] = {
        {o->transport != NULL, "transport"},          {p->server != NULL, "server"},
        {o->transport_config.path_count > 0, "path"}, {p->url != NULL, "url"},
        {o->player.chunk_bytes > 0, "chunk-bytes"},   {p->bitrate > 0, "bitrate"},
        {o->player.time_limit_us > 0, "time-limit"},  {o->out_file != NULL, "out"},
    };
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (!required[i].given) {
            return fail(p, "--%s is required; see --help.", required[i].option);
        }
    }
    return true;
}

/* "@:PORT" stands for $MPSHELL_GATEWAY:PORT. */
static bool check_server(parser *p) {
    char text[96];
    snprintf(text, sizeof text, "%s", p->server);
    if (p->server[0] == '@') {
        const char *gateway = getenv("MPSHELL_GATEWAY");
        if (gateway == NULL) {
            return fail(p,
                        "--server '%s' needs $MPSHELL_GATEWAY, which mpshell sets; give ADDR:PORT outside of mpshell.",
                        p->server);
        }
        snprintf(text, sizeof text, "%s%s", gateway, p->server + 1);
    }
    player_transport_config *c = &p->o->transport_config;
    if (!net_parse_endpoint(text, &c->server) || c->server.port == 0) {
        return fail(p, "--server takes ADDR:PORT with an IP address, not '%s'.", text);
    }
    xl_addr_format(&c->server, p->o->authority, sizeof p->o->authority);
    c->authority = p->o->authority;
    return true;
}

static bool check_scheme(parser *p) {
    const char *scheme = p->o->transport_config.scheme;
    const player_transport_ops *transport = p->o->transport;
    bool chosen = p->o->transport_config.scheduler != NULL || p->o->transport_config.congestion != NULL;
    if (transport->schemes == NULL && chosen) {
        return fail(p, "--scheduler and --cc are for --transport quic; the kernel decides for %s.", transport->name);
    }
    if (transport->schemes == NULL) {
        return scheme == NULL ||
               fail(p, "--scheme '%s' has no meaning with --transport %s; leave it out.", scheme, transport->name);
    }
    char known[128] = "";
    for (size_t i = 0; transport->schemes[i] != NULL; i++) {
        if (scheme != NULL && strcmp(scheme, transport->schemes[i]) == 0) {
            return true;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "", transport->schemes[i]);
    }
    return scheme == NULL ? fail(p, "--transport %s needs --scheme, one of %s.", transport->name, known)
                          : fail(p, "'%s' is not a scheme; known are %s.", scheme, known);
}

bool player_options_choose_primary(player_options *o, const char *primary, const char *order, char *error, size_t cap) {
    player_path *paths = o->paths;
    unsigned rank[XL_TECH_UNKNOWN + 1] = {0, 1, 2, 3, 4};
    size_t count = o->transport_config.path_count, chosen = 0;
    if (order != NULL && !path_order_parse(order, rank, error, cap)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (primary != NULL ? strcmp(paths[i].name, primary) == 0
                            : rank[paths[i].technology] < rank[paths[chosen].technology]) {
            chosen = i;
        }
    }
    if (primary != NULL && strcmp(paths[chosen].name, primary) != 0) {
        char known[(PLAYER_NAME_BYTES + 2) * PLAYER_MAX_PATHS] = "";
        for (size_t i = 0; i < count; i++) {
            size_t used = strlen(known);
            (void)snprintf(known + used, sizeof known - used, "%s%.31s", i > 0 ? ", " : "", paths[i].name);
        }
        snprintf(error, cap, "no path is named '%.40s', the primary one; known are %s", primary, known);
        return false;
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
        while (k < c->path_count && strcmp(o->paths[k].name, o->path_events[i].name) != 0) {
            k++;
        }
        if (k == c->path_count) {
            snprintf(error, cap, "a path event names '%s', and no path has that name", o->path_events[i].name);
            return false;
        }
    }
    if (c->path_event_count > 0 && (c->scheme == NULL || !quic_scheme_is_multipath(c->scheme))) {
        snprintf(error, cap, "path events need a scheme that uses several paths at a time");
        return false;
    }
    if (path_events_add_later(o->path_events, c->path_event_count, o->paths[0].name)) {
        snprintf(error, cap, "the primary path '%s' cannot be added later; name another one as primary",
                 o->paths[0].name);
        return false;
    }
    return true;
}

/* Order, events, management, migration. */
static bool check_paths(parser *p) {
    char error[256];
    player_transport_config *c = &p->o->transport_config;
    xl_limits checked = {0};
    c->path_events = p->o->path_events;
    bool ok = player_options_choose_primary(p->o, p->primary, p->path_order, error, sizeof error) &&
              player_options_check_events(p->o, error, sizeof error) &&
              path_options_apply(&c->path_options, &checked, error, sizeof error);
    return ok || fail(p, "%s.", error);
}

static bool check_url(parser *p) {
    size_t len = strlen(p->url);
    if (p->url[0] != '/' || len >= sizeof p->o->target) {
        return fail(p, "--url takes the path of a resource that begins with '/', not '%s'.", p->url);
    }
    for (size_t i = 0; i < len; i++) {
        if (p->url[i] <= ' ' || p->url[i] > '~') {
            return fail(p, "--url holds a character that must be percent-encoded.");
        }
    }
    memcpy(p->o->target, p->url, len + 1);
    p->o->transport_config.target = p->o->target;
    uint64_t bytes = 0;
    if (strncmp(p->url, "/synthetic/", 11) == 0) {
        if (!video_synthetic_parse(p->url, len, &bytes)) {
            return fail(p, "'%s' is not /synthetic/BYTES with a whole number of bytes.", p->url);
        }
        if (p->size != 0 && p->size != bytes) {
            return fail(p, "--size and --url disagree about the size of the video.");
        }
        p->size = bytes;
        return true;
    }
    if (p->size == 0) {
        return fail(p, "--size is required, because the URL does not tell the size of the video.");
    }
    return !p->o->player.verify || fail(p, "--verify works with /synthetic/BYTES only.");
}

static bool check_video(parser *p) {
    player_config *c = &p->o->player;
    if (!video_init(&c->video, p->size, p->bitrate, (uint32_t)p->fps_milli, p->first_frame_bytes)) {
        return fail(p, "the bit rate is less than a byte a frame.");
    }
    if (p->duration_us > 0) {
        uint64_t bytes = video_bytes_in(p->bitrate, p->duration_us);
        c->play_bytes = bytes < p->size ? bytes : p->size;
        c->play_bytes += c->play_bytes == 0;
    }
    const char *problem = player_config_problem(c);
    return problem == NULL || fail(p, "%s.", problem);
}

bool player_options_parse(int argc, char **argv, player_options *out, char *error, size_t error_cap) {
    *out = (player_options){
        .player = {.concurrency = 1,
                   .rebuffer_target_us = PLAYER_REBUFFER_TARGET_US,
                   .max_buffer_us = PLAYER_MAX_BUFFER_US,
                   .report_interval_us = PLAYER_REPORT_INTERVAL_US},
    };
    parser p = {.o = out, .error = error, .cap = error_cap, .fps_milli = 30000};
    if (!read_arguments(&p, argc, argv)) {
        return false;
    }
    if (out->help) {
        return true;
    }
    bool ok = check_required(&p) && check_server(&p) && check_scheme(&p) && check_paths(&p) && check_url(&p) &&
              check_video(&p);
    out->transport_config.concurrency = out->player.concurrency;
    return ok;
}
