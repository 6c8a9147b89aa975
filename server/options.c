#include "server/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http1.h"
#include "http/keyvalue.h"
#include "http/net.h"
#include "http/quic_scheme.h"
#include "http/reinjection_options.h"
#include "http/text_file.h"
#include "http/video.h"
#include "xlink/deployment.h"

#define DEFAULT_QLOG_FILES 10000

enum {
    OPT_QUIC = 256,
    OPT_HTTP1,
    OPT_MPTCP,
    OPT_CERT,
    OPT_KEY,
    OPT_ROOT,
    OPT_FRAME_INDEX,
    OPT_FFPROBE,
    OPT_SCHEME,
    OPT_T_TH1,
    OPT_T_TH2,
    OPT_REINJECTION,
    OPT_MAX_REINJECTIONS,
    OPT_COPY_RULE,
    OPT_RESCUE,
    OPT_RESCUE_GAIN,
    OPT_RESCUE_PERMILLE,
    OPT_QOE_CONTROL,
    OPT_QOE_EXTRAPOLATION,
    OPT_ACK_PATH,
    OPT_SCHEDULER,
    OPT_PATH_MANAGEMENT,
    OPT_CC,
    OPT_SEED,
    OPT_OUT,
    OPT_QLOG_DIR,
    OPT_KEYLOG,
    OPT_FPS,
    OPT_BITRATE,
    OPT_FIRST_FRAME_BYTES,
    OPT_SEND_BUFFER,
    OPT_RETRY_ABOVE,
    OPT_MAX_CONNECTIONS,
    OPT_MAX_PER_ADDRESS,
    OPT_QLOG_FILES,
    OPT_WORKERS,
    OPT_LB_CONFIG,
    OPT_SERVER_ID,
    OPT_PARAMS,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"quic", required_argument, NULL, OPT_QUIC},
    {"http1", required_argument, NULL, OPT_HTTP1},
    {"mptcp", no_argument, NULL, OPT_MPTCP},
    {"cert", required_argument, NULL, OPT_CERT},
    {"key", required_argument, NULL, OPT_KEY},
    {"root", required_argument, NULL, OPT_ROOT},
    {"frame-index", required_argument, NULL, OPT_FRAME_INDEX},
    {"ffprobe", required_argument, NULL, OPT_FFPROBE},
    {"scheme", required_argument, NULL, OPT_SCHEME},
    {"t-th1", required_argument, NULL, OPT_T_TH1},
    {"t-th2", required_argument, NULL, OPT_T_TH2},
    {"reinjection", required_argument, NULL, OPT_REINJECTION},
    {"max-reinjections", required_argument, NULL, OPT_MAX_REINJECTIONS},
    {"copy-rule", required_argument, NULL, OPT_COPY_RULE},
    {"rescue", required_argument, NULL, OPT_RESCUE},
    {"rescue-gain", required_argument, NULL, OPT_RESCUE_GAIN},
    {"rescue-permille", required_argument, NULL, OPT_RESCUE_PERMILLE},
    {"qoe-control", required_argument, NULL, OPT_QOE_CONTROL},
    {"qoe-extrapolation", required_argument, NULL, OPT_QOE_EXTRAPOLATION},
    {"ack-path", required_argument, NULL, OPT_ACK_PATH},
    {"scheduler", required_argument, NULL, OPT_SCHEDULER},
    {"path-management", required_argument, NULL, OPT_PATH_MANAGEMENT},
    {"cc", required_argument, NULL, OPT_CC},
    {"seed", required_argument, NULL, OPT_SEED},
    {"out", required_argument, NULL, OPT_OUT},
    {"qlog-dir", required_argument, NULL, OPT_QLOG_DIR},
    {"qlog-files", required_argument, NULL, OPT_QLOG_FILES},
    {"keylog", required_argument, NULL, OPT_KEYLOG},
    {"fps", required_argument, NULL, OPT_FPS},
    {"bitrate", required_argument, NULL, OPT_BITRATE},
    {"first-frame-bytes", required_argument, NULL, OPT_FIRST_FRAME_BYTES},
    {"send-buffer", required_argument, NULL, OPT_SEND_BUFFER},
    {"retry-above", required_argument, NULL, OPT_RETRY_ABOVE},
    {"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
    {"max-connections-per-address", required_argument, NULL, OPT_MAX_PER_ADDRESS},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"lb-config", required_argument, NULL, OPT_LB_CONFIG},
    {"server-id", required_argument, NULL, OPT_SERVER_ID},
    {"params", required_argument, NULL, OPT_PARAMS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

const char *server_options_usage(void) {
    return "usage: xlink-server [--quic ADDR:PORT] [--http1 ADDR:PORT [--mptcp]] [options]\n"
           "  --quic ADDR:PORT            HTTP/3 over QUIC; port 0: the kernel chooses\n"
           "  --http1 ADDR:PORT           HTTP/1.1 over TCP; with --mptcp over MPTCP, too\n"
           "  --cert FILE --key FILE      PEM; without them a self-signed certificate is made in memory\n"
           "  --root DIR                  serve the files below DIR beside /synthetic/BYTES\n"
           "  --frame-index FILE          JSON: {\"/video\": [{\"offset\": 0, \"size\": 1234}, ...], ...}\n"
           "  --ffprobe /VIDEO=FILE       FILE: ffprobe -show_packets -of json of that video; may be repeated\n"
           "  --bitrate BPS, --fps F, --first-frame-bytes N\n"
           "                              frame model of videos that the index does not list\n"
           "  --scheme sp|cm|vanilla-mp|xlink|xlink+ (xlink)\n"
           "  --reinjection none|appending|stream|frame, --t-th1 MS, --t-th2 MS\n"
           "                              what is sent twice, and the thresholds of play-time left\n"
           "  --max-reinjections N        copies of one packet, each on a path of its own (1)\n"
           "  --copy-rule pays|always     copy only what a copy overtakes (pays), or all that may be (the paper's "
           "form)\n"
           "  --rescue on|off             copies while the gate is closed (docs/xlink-plus.md)\n"
           "  --rescue-gain MS            which are expected so much before their originals (500)\n"
           "  --rescue-permille N         while all copies are less than this share of what is sent (20)\n"
           "  --qoe-control on|off        the double threshold; off: nothing closes the gate\n"
           "  --qoe-extrapolation on|off  play-time left shrinks between the player's signals (on)\n"
           "  --path-management off|on[,rtt=FACTOR][,loss=PERCENT][,degraded=S][,recovered=S]\n"
           "                              degraded paths stand by (off): docs/paths.md\n"
           "  --scheduler NAME, --cc NAME  which path carries the next packet, and congestion control, of what the\n"
           "                              server sends; an unknown name lists the known ones (docs/schedulers.md)\n"
           "  --ack-path original|fastest, --send-buffer BYTES\n"
           "  --seed N                    random choices, keys and secrets follow from N: a run to repeat, not for "
           "deployment\n"
           "  --retry-above N             with so many handshakes under way new clients prove their address first, by "
           "Retry;\n"
           "                              0: always (256)\n"
           "  --max-connections N         at a time, of each protocol and process: QUIC clients beyond are refused, "
           "of\n"
           "                              HTTP/1.1's the one that is idle longest makes room (QUIC 1024, HTTP/1.1 "
           "256)\n"
           "  --max-connections-per-address N\n"
           "                              of them, of one IPv4 address or IPv6 /64; 0: no limit (a quarter; with\n"
           "                              --lb-config no limit)\n"
           "  --workers N                 N processes, each connection with one of them\n"
           "  --lb-config FILE --server-id HEX\n"
           "                              connection IDs that xlink-balancer can route\n"
           "  --params FILE               algorithm parameters, read at the start and at every SIGHUP\n"
           "  --out FILE.jsonl, --qlog-dir DIR, --keylog FILE\n"
           "  --qlog-files N              qlogs that a process makes at most; connections after them have none "
           "(10000)\n";
}

typedef struct {
    server_config *o;
    bool *help;
    char *error;
    size_t cap;
} parser;

__attribute__((format(printf, 2, 3))) static bool fail(parser *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->error, p->cap, format, args);
    va_end(args);
    return false;
}

/* One of a list of words, NULL terminated. */
static bool parse_word(parser *p, const char *option, const char *text, const char *const *words, const char **out) {
    char known[128] = "";
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = words[i];
            return true;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return fail(p, "'%s' is not a value of --%s; known are %s.", text, option, known);
}

static bool parse_integer(parser *p, const char *option, const char *text, uint64_t least, uint64_t most,
                          uint64_t *out) {
    if (!http1_parse_number(text, strlen(text), out) || *out < least || *out > most) {
        return fail(p, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'.", option, least, most,
                    text);
    }
    return true;
}

static bool parse_ms(parser *p, const char *option, const char *text, uint64_t *us, bool *given) {
    *given = true;
    return (video_parse_milli(text, us) && *us <= UINT64_C(1000000000000)) ||
           fail(p, "--%s takes milliseconds with at most three decimals, not '%s'.", option, text);
}

static bool parse_endpoint(parser *p, const char *option, const char *text, xl_addr *out, bool *given) {
    *given = true;
    return net_parse_endpoint(text, out) || fail(p, "--%s takes ADDR:PORT with an IP address, not '%s'.", option, text);
}

static bool parse_fps(parser *p, const char *text) {
    uint64_t milli = 0;
    if (!video_parse_milli(text, &milli) || milli == 0 || milli > VIDEO_MAX_FPS_MILLI) {
        return fail(p, "--fps takes a number from 0.001 to 1000 with at most three decimals, not '%s'.", text);
    }
    p->o->video.fps_milli = (uint32_t)milli;
    return true;
}

static bool parse_ack_path(parser *p, const char *text) {
    static const char *const words[] = {"original", "fastest", NULL};
    const char *word = NULL;
    if (!parse_word(p, "ack-path", text, words, &word)) {
        return false;
    }
    p->o->ack_path = word == words[1] ? XL_ACK_FASTEST : XL_ACK_ORIGINAL;
    p->o->ack_path_given = true;
    return true;
}

static bool parse_ffprobe(parser *p, const char *text) {
    const char *equals = strchr(text, '=');
    if (text[0] != '/' || equals == NULL || equals[1] == '\0') {
        return fail(p, "--ffprobe takes /VIDEO=FILE, not '%s'.", text);
    }
    if (p->o->ffprobe_count == SERVER_MAX_FFPROBE) {
        return fail(p, "--ffprobe may be given %d times; list more videos in a --frame-index.", SERVER_MAX_FFPROBE);
    }
    p->o->ffprobe[p->o->ffprobe_count++] = text;
    return true;
}

/* Options that name files, or nothing but themselves. */
static bool take_plain_option(parser *p, int option, const char *value) {
    server_config *o = p->o;
    const char **const text[] = {
        [OPT_CERT - OPT_QUIC] = &o->cert_file,
        [OPT_KEY - OPT_QUIC] = &o->key_file,
        [OPT_ROOT - OPT_QUIC] = &o->root,
        [OPT_FRAME_INDEX - OPT_QUIC] = &o->frame_index_file,
        [OPT_OUT - OPT_QUIC] = &o->out_file,
        [OPT_QLOG_DIR - OPT_QUIC] = &o->qlog_dir,
        [OPT_KEYLOG - OPT_QUIC] = &o->keylog_file,
        [OPT_LB_CONFIG - OPT_QUIC] = &o->lb_file,
        [OPT_SERVER_ID - OPT_QUIC] = &o->server_id,
        [OPT_PARAMS - OPT_QUIC] = &o->params_file,
        [OPT_HELP - OPT_QUIC] = NULL,
    };
    if (option == OPT_HELP) {
        *p->help = true;
    } else if (option == OPT_MPTCP) {
        o->mptcp = true;
    } else {
        *text[option - OPT_QUIC] = value;
    }
    return true;
}

/* Scheduler and congestion controller of what is sent; NULL leaves one as it is. */
static bool parse_sender(parser *p, const char *scheduler, const char *congestion) {
    xl_scheme checked = {0};
    char reason[192];
    if (!quic_scheme_override(scheduler, congestion, &checked, reason, sizeof reason)) {
        return fail(p, "%s.", reason);
    }
    p->o->scheduler = scheduler != NULL ? checked.scheduler : p->o->scheduler;
    p->o->congestion = congestion != NULL ? checked.congestion : p->o->congestion;
    return true;
}

static bool parse_path_management(parser *p, const char *value) {
    xl_limits checked = {0};
    char error[256];
    p->o->path_options.management = value;
    return path_options_apply(&p->o->path_options, &checked, error, sizeof error) || fail(p, "%s.", error);
}

static bool take_option(parser *p, int option, const char *value) {
    static const char *const modes[] = {"none", "appending", "stream", "frame", NULL};
    server_config *o = p->o;
    switch (option) {
    case OPT_QUIC:
        return parse_endpoint(p, "quic", value, &o->quic_addr, &o->quic);
    case OPT_HTTP1:
        return parse_endpoint(p, "http1", value, &o->http1_addr, &o->http1);
    case OPT_SCHEME:
        return parse_word(p, "scheme", value, quic_scheme_names, &o->scheme);
    case OPT_REINJECTION:
        return parse_word(p, "reinjection", value, modes, &o->reinjection);
    case OPT_CC:
        return parse_sender(p, NULL, value);
    case OPT_SCHEDULER:
        return parse_sender(p, value, NULL);
    case OPT_PATH_MANAGEMENT:
        return parse_path_management(p, value);
    case OPT_MAX_REINJECTIONS:
        return parse_integer(p, "max-reinjections", value, 1, MAX_REINJECTIONS, &o->reinjections.max_reinjections);
    case OPT_COPY_RULE:
        return parse_word(p, "copy-rule", value, copy_rules, &o->reinjections.copy_rule);
    case OPT_RESCUE:
        return parse_word(p, "rescue", value, on_or_off, &o->reinjections.rescue);
    case OPT_RESCUE_GAIN:
        return parse_integer(p, "rescue-gain", value, 1, MAX_RESCUE_GAIN_MS, &o->reinjections.rescue_gain_ms);
    case OPT_RESCUE_PERMILLE:
        return parse_integer(p, "rescue-permille", value, 1, 1000, &o->reinjections.rescue_permille);
    case OPT_QOE_CONTROL:
        return parse_word(p, "qoe-control", value, on_or_off, &o->reinjections.qoe_control);
    case OPT_QOE_EXTRAPOLATION:
        return parse_word(p, "qoe-extrapolation", value, on_or_off, &o->reinjections.qoe_extrapolation);
    case OPT_FFPROBE:
        return parse_ffprobe(p, value);
    case OPT_ACK_PATH:
        return parse_ack_path(p, value);
    case OPT_T_TH1:
        return parse_ms(p, "t-th1", value, &o->t_th1_us, &o->t_th1_given);
    case OPT_T_TH2:
        return parse_ms(p, "t-th2", value, &o->t_th2_us, &o->t_th2_given);
    case OPT_SEED:
        o->seed.given = true;
        return parse_integer(p, "seed", value, 0, INT64_MAX, &o->seed.seed);
    case OPT_WORKERS:
        return parse_integer(p, "workers", value, 1, XL_WORKERS_MAX, &o->workers);
    case OPT_FPS:
        return parse_fps(p, value);
    case OPT_BITRATE:
        return parse_integer(p, "bitrate", value, 1, VIDEO_MAX_BITRATE_BPS, &o->video.bitrate_bps);
    case OPT_FIRST_FRAME_BYTES:
        return parse_integer(p, "first-frame-bytes", value, 1, VIDEO_MAX_BYTES, &o->video.first_frame_bytes);
    case OPT_SEND_BUFFER:
        return parse_integer(p, "send-buffer", value, 4096, 1 << 30, &o->send_buffer_bytes);
    case OPT_QLOG_FILES:
        return parse_integer(p, "qlog-files", value, 1, UINT32_MAX, &o->qlog_files);
    case OPT_RETRY_ABOVE:
        o->retry_above_given = true;
        return parse_integer(p, "retry-above", value, 0, 1 << 20, &o->retry_above);
    case OPT_MAX_CONNECTIONS:
        return parse_integer(p, "max-connections", value, 1, 1 << 20, &o->max_connections);
    case OPT_MAX_PER_ADDRESS:
        o->max_per_address_given = true;
        return parse_integer(p, "max-connections-per-address", value, 0, 1 << 20, &o->max_per_address);
    default:
        return take_plain_option(p, option, value);
    }
}

static bool check(parser *p) {
    const server_config *o = p->o;
    if (!o->quic && !o->http1) {
        return fail(p, "nothing to listen on: give --quic ADDR:PORT, --http1 ADDR:PORT or both.");
    }
    if (o->mptcp && !o->http1) {
        return fail(p, "--mptcp needs --http1 ADDR:PORT.");
    }
    if ((o->lb_file == NULL) != (o->server_id == NULL)) {
        return fail(p, "--lb-config and --server-id go together.");
    }
    if ((o->cert_file == NULL) != (o->key_file == NULL)) {
        return fail(p, "--cert and --key go together.");
    }
    if (o->t_th1_given && o->t_th2_given && o->t_th1_us > o->t_th2_us) {
        return fail(p, "--t-th1 must not be greater than --t-th2.");
    }
    return true;
}

bool server_options_parse(int argc, char **argv, server_config *out, bool *help, char *error, size_t error_cap) {
    *out = (server_config){.scheme = "xlink", .video = {.fps_milli = 30000}, .qlog_files = DEFAULT_QLOG_FILES};
    *help = false;
    parser p = {.o = out, .help = help, .error = error, .cap = error_cap};
    opterr = 0;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == ':') {
            return fail(&p, "%s needs a value; see --help.", argv[optind - 1]);
        }
        if (option == '?') {
            return fail(&p, "unknown option '%s'; see --help.", argv[optind - 1]);
        }
        if (!take_option(&p, option, optarg)) {
            return false;
        }
    }
    if (optind < argc) {
        return fail(&p, "unexpected argument '%s'; see --help.", argv[optind]);
    }
    return *help || check(&p);
}

uint64_t server_max_per_address(const server_config *o, uint64_t max_connections) {
    if (o->max_per_address_given)
        return o->max_per_address;
    /* Behind a balancer that forwards like a NAT all clients have its address. */
    return o->lb_file != NULL ? 0 : (max_connections + 3) / 4;
}

/* ---- The parameter file ---- */

/* What may change while the server runs. */
static const char *const reloadable[] = {
    "scheme",   "reinjection", "max-reinjections",  "copy-rule", "qoe-control", "t-th1", "t-th2",
    "ack-path", "cc",          "qoe-extrapolation", "scheduler",
};
#define RELOADABLE (sizeof reloadable / sizeof reloadable[0])

static const struct option *find_option(const char *name) {
    for (size_t i = 0; i < RELOADABLE; i++) {
        for (const struct option *o = long_options; strcmp(reloadable[i], name) == 0 && o->name != NULL; o++) {
            if (strcmp(o->name, name) == 0) {
                return o;
            }
        }
    }
    return NULL;
}

static bool take_parameter(parser *p, const keyvalue *e) {
    const struct option *option = e->section_number == 0 ? find_option(e->name) : NULL;
    if (option != NULL) {
        return take_option(p, option->val, e->value);
    }
    char known[256] = "";
    for (size_t i = 0; i < RELOADABLE; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "", reloadable[i]);
    }
    return fail(p, "'%s' is not a parameter; known are %s.", e->name, known);
}

static bool take_parameters(parser *p, char *text) {
    char reason[SERVER_ERROR_BYTES], *whole = p->error;
    size_t whole_cap = p->cap;
    keyvalue_reader reader = keyvalue_reader_of(text);
    keyvalue e;
    keyvalue_result result;
    bool ok = true;
    p->error = reason;
    p->cap = sizeof reason;
    while (ok && (result = keyvalue_next(&reader, &e)) != KEYVALUE_END) {
        ok = result == KEYVALUE_ENTRY ? take_parameter(p, &e) : fail(p, "this is not name = value.");
    }
    if (ok) {
        e.line = reader.line;
        ok = check(p);
    }
    if (!ok) {
        snprintf(whole, whole_cap, "%s, line %u: %s", p->o->params_file, e.line, reason);
    }
    p->error = whole;
    p->cap = whole_cap;
    return ok;
}

bool server_options_load_params(const server_config *base, server_config *out, char *error, size_t error_cap) {
    server_config fresh = *base;
    char *text = text_file_read(base->params_file, error, error_cap > 1 ? error_cap - 1 : 0);
    if (text == NULL) {
        strcat(error, ".");
        return false;
    }
    parser p = {.o = &fresh, .error = error, .cap = error_cap};
    bool ok = take_parameters(&p, text);
    free(text);
    if (ok) {
        *out = fresh;
    }
    return ok;
}
