#include "server/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"
#include "base/settings.h"
#include "base/net.h"
#include "video/video.h"
#include "xlink/deployment.h"

#define DEFAULT_OUT_BYTES  (UINT64_C(1) << 30)
#define DEFAULT_QLOG_FILES 10000
#define CONNECTIONS_MOST   (1 << 20)
#define RETRY_ABOVE_MOST   (1 << 20)
#define DEFAULT_FPS_MILLI  30000

/* ---- Settings with a form of their own ---- */

static bool read_quic(void *into, const char *text, char *reason, size_t cap) {
    server_config *c = into;
    if (!c->quic_addr.family)
        return net_read_endpoint(&c->quic_addr, text, reason, cap);
    return net_read_endpoint(&c->quic_too, text, reason, cap) &&
           (c->quic_too.family != c->quic_addr.family ||
            error_set(reason, cap, "may be given once for each IP version"));
}

static bool read_preferred(void *into, const char *text, char *reason, size_t cap) {
    server_config *c = into;
    xl_addr a;
    if (!net_read_endpoint(&a, text, reason, cap))
        return false;
    if (a.port == 0)
        return error_set(reason, cap, "takes a port that is not 0, because clients are told of it");
    c->preferred[a.family == 6] = a;
    return true;
}

static bool read_ffprobe(void *into, const char *text, char *reason, size_t cap) {
    server_config *c = into;
    const char *equals = strchr(text, '=');
    if (text[0] != '/' || !equals || !equals[1])
        return error_set(reason, cap, "takes /VIDEO=FILE, not '%.60s'", text);
    if (c->ffprobe_count == SERVER_MAX_FFPROBE)
        return error_set(reason, cap, "may be given %d times; list more videos in a --frame-index", SERVER_MAX_FFPROBE);
    c->ffprobe[c->ffprobe_count++] = text;
    return true;
}

static bool read_retry_above(void *into, const char *text, char *reason, size_t cap) {
    xl_limits *limits = &((server_config *)into)->settings.limits;
    uint64_t n = 0;
    if (!number_parse(text, strlen(text), &n) || n > RETRY_ABOVE_MOST)
        return error_set(reason, cap, "takes a whole number from 0 to %d, not '%.60s'", RETRY_ABOVE_MOST, text);
    limits->retry_always = n == 0;
    limits->retry_above = (size_t)n;
    return true;
}

/* ---- The table ---- */

#define FIELD(member) SETTING_FIELD(server_config, member)

static const setting rows[] = {
    {"quic", SETTING_OWN, .read = read_quic, .value = "ADDR:PORT",
     .help = "Serve HTTP/3 over QUIC at this address. Port 0: the kernel chooses. May be given once for each IP "
             "version; the paths of a connection may lead to both."},
    {"preferred_address", SETTING_OWN, .read = read_preferred, .value = "ADDR:PORT",
     .help = "QUIC: listen at this address too, and ask clients to move there after the handshake (RFC 9000 section "
             "9.6). May be given once for each IP version."},
    {"http1", SETTING_OWN, FIELD(http1_addr), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Serve HTTP/1.1 over TCP at this address."},
    {"mptcp", SETTING_FLAG, FIELD(mptcp), .help = "With --http1: accept MPTCP too."},
    {"cert", SETTING_TEXT, FIELD(cert_file), .value = "FILE",
     .help = "Certificate in PEM format. Without it the server makes a self-signed certificate in memory."},
    {"key", SETTING_TEXT, FIELD(key_file), .value = "FILE", .help = "Private key of the certificate, in PEM format."},
    {"ciphers", SETTING_TEXT, FIELD(ciphers), .value = "NAMES", .fallback = "aes128,aes256,chacha20",
     .help = "QUIC: cipher suites that are taken, the preferred one first, with commas between them."},
    {"root", SETTING_TEXT, FIELD(root), .value = "DIR",
     .help = "Serve the files below DIR, in addition to /synthetic/BYTES."},
    {"frame_index", SETTING_TEXT, FIELD(frame_index_file), .value = "FILE",
     .help = "JSON with the frames of videos: {\"/video\": [{\"offset\": 0, \"size\": 1234}, ...], ...}"},
    {"ffprobe", SETTING_OWN, .read = read_ffprobe, .value = "/VIDEO=FILE",
     .help = "Read the frames of a video from FILE, the output of ffprobe -show_packets -of json. May be repeated."},
    {"bitrate", SETTING_WHOLE, FIELD(video.bitrate_bps), .least = 1, .most = VIDEO_MAX_BITRATE_BPS, .value = "BPS",
     .help = "Frame model of videos that are not in the index: bit rate."},
    {"fps", SETTING_DECIMAL, FIELD(video.fps_milli), .least = 1, .most = VIDEO_MAX_FPS_MILLI, .value = "F",
     .fallback = "30", .help = "Frame model: frames per second."},
    {"first_frame_bytes", SETTING_WHOLE, FIELD(video.first_frame_bytes), .least = 1, .most = VIDEO_MAX_BYTES,
     .value = "BYTES", .help = "Frame model: size of the first frame."},
    {"seed", SETTING_OWN, FIELD(seed), .read = random_seed_read, .value = "N",
     .help = "Derive all random choices, keys and secrets from N, so that runs can be repeated. Not for deployment."},
    {"send_buffer_bytes", SETTING_WHOLE, FIELD(settings.limits.send_buffer_bytes), .least = 4096, .most = 1 << 30,
     .value = "BYTES", .fallback = "4194304", .help = "Unacknowledged data of one QUIC stream or TCP connection."},
    {"retry_above", SETTING_OWN, .read = read_retry_above, .value = "N", .fallback = "256",
     .help = "With this many handshakes in progress, new clients must validate their address by Retry. 0: always."},
    {"early_data", SETTING_FLAG, FIELD(early_data),
     .help = "Take requests in the first packets of connections that resume a session (0-RTT)."},
    {"no_tickets", SETTING_FLAG, FIELD(without_tickets),
     .help = "Send no session tickets and no address tokens, so that clients cannot resume."},
    {"max_connections", SETTING_WHOLE, FIELD(max_connections), .least = 1, .most = CONNECTIONS_MOST, .value = "N",
     .fallback = "QUIC 1024, HTTP/1.1 256",
     .help = "Maximum number of connections, for each protocol and process. Further QUIC clients are refused; a "
             "further HTTP/1.1 client replaces the connection that is idle longest."},
    {"max_connections_per_address", SETTING_WHOLE, FIELD(max_per_address), .most = CONNECTIONS_MOST, .value = "N",
     .fallback = "a quarter of --max-connections; with --lb-config no limit",
     .help = "Maximum number of connections of one IPv4 address or IPv6 /64. 0: no limit."},
    {"workers", SETTING_WHOLE, FIELD(workers), .least = 1, .most = XL_WORKERS_MAX, .value = "N",
     .help = "Run N processes. Each connection belongs to one of them."},
    {"lb_config", SETTING_TEXT, FIELD(lb_file), .value = "FILE",
     .help = "Configuration file of routable connection IDs, shared with xlink-balancer."},
    {"server_id", SETTING_TEXT, FIELD(server_id), .value = "HEX",
     .help = "ID of this server in the configuration of --lb-config."},
    {"params", SETTING_TEXT, FIELD(params_file), .value = "FILE",
     .help = "YAML file with settings of the scheme. Read at the start and at every SIGHUP."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE.jsonl", .help = "Write events and a summary as JSON Lines."},
    {"out_bytes", SETTING_WHOLE, FIELD(out_bytes), .most = INT64_MAX, .value = "BYTES", .fallback = "1073741824",
     .help = "Size of --out from which on no events are written; the summary still is. 0: no limit."},
    {"qlog_dir", SETTING_TEXT, FIELD(qlog_dir), .value = "DIR", .help = "Write a qlog for each connection."},
    {"qlog_files", SETTING_WHOLE, FIELD(qlog_files), .least = 1, .most = UINT32_MAX, .value = "N", .fallback = "10000",
     .help = "Maximum number of qlogs of a process. Later connections have none."},
    {"keylog", SETTING_TEXT, FIELD(keylog_file), .value = "FILE", .help = "Append TLS secrets in NSS key log format."},
    {"describe_settings", SETTING_FLAG, FIELD(describe_settings),
     .help = "Print the schemes and their settings as JSON, and exit."},
    {0},
};

static setting_tables all(server_config *c, settings_pass pass) {
    return (setting_tables){
        .table = {{rows, c, 0}, {quic_setting_rows, &c->settings, SETTING_OF_SERVER}}, .count = 2, .pass = pass};
}

void server_options_print_usage(void) {
    printf("usage: xlink-server [--quic ADDR:PORT] [--http1 ADDR:PORT [--mptcp]] [options]\n");
    settings_help(stdout, rows, 0);
    settings_help(stdout, quic_setting_rows, SETTING_OF_SERVER);
}

static const char *problem(const server_config *c) {
    if (!c->quic_addr.family && !c->http1_addr.family)
        return "nothing to listen on: give --quic ADDR:PORT, --http1 ADDR:PORT or both";
    if (c->mptcp && !c->http1_addr.family)
        return "--mptcp needs --http1 ADDR:PORT";
    bool has_preferred = c->preferred[0].family || c->preferred[1].family;
    if (has_preferred && (!c->quic_addr.family || c->workers > 0))
        return "--preferred-address needs --quic ADDR:PORT and does not go with --workers";
    if (c->quic_too.family && c->workers > 0)
        return "a second --quic does not go with --workers";
    if (!c->lb_file != !c->server_id)
        return "--lb-config and --server-id go together";
    if (!c->cert_file != !c->key_file)
        return "--cert and --key go together";
    return quic_settings_problem(&c->settings, false);
}

static void init(server_config *c, int argc, char **argv) {
    *c = (server_config){
        .argc = argc,
        .argv = argv,
        .video = {.fps_milli = DEFAULT_FPS_MILLI},
        .max_per_address = SERVER_SHARE_PER_ADDRESS,
        .out_bytes = DEFAULT_OUT_BYTES,
        .qlog_files = DEFAULT_QLOG_FILES,
    };
    quic_settings_init(&c->settings);
    quic_settings_choose(&c->settings, "xlink-lean");
}

uint64_t server_max_per_address(const server_config *c, uint64_t max_connections) {
    if (c->max_per_address != SERVER_SHARE_PER_ADDRESS)
        return c->max_per_address;
    /* Behind a balancer that forwards like a NAT, all clients have the balancer's address. */
    return c->lb_file ? 0 : (max_connections + 3) / 4;
}

bool server_options_parse(int argc, char **argv, server_config *out, char *error) {
    init(out, argc, argv);
    const setting_tables s = all(out, SETTINGS_ALL);
    if (!settings_read_args(&s, argc, argv, &out->help, NULL, error))
        return false;
    if (out->help || out->describe_settings)
        return true;
    const char *what = problem(out);
    return !what || error_set(error, SETTINGS_ERROR_BYTES, "%s.", what);
}

bool server_options_load_params(const server_config *base, server_config *out, char *error) {
    server_config fresh;
    bool help;
    init(&fresh, base->argc, base->argv);
    memcpy(fresh.random_key, base->random_key, sizeof fresh.random_key);
    fresh.random_packet_numbers = base->random_packet_numbers;
    const setting_tables bases = all(&fresh, SETTINGS_BASES), others = all(&fresh, SETTINGS_OTHERS);
    if (!settings_read_args(&bases, base->argc, base->argv, &help, NULL, error) ||
        !settings_read_yaml(&bases, base->params_file, error) ||
        !settings_read_args(&others, base->argc, base->argv, &help, NULL, error) ||
        !settings_read_yaml(&others, base->params_file, error))
        return false;
    const char *what = problem(&fresh);
    if (what)
        snprintf(error, SETTINGS_ERROR_BYTES, "%s: %s.", base->params_file, what);
    else
        *out = fresh;
    return !what;
}
