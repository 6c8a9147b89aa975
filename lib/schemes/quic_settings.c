#include "schemes/quic_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text_file.h"
#include "schemes/path_grammars.h"

/* Kernel TCP has no idle timeout. With a short one, only QUIC would lose its connection in a long outage. */
#define IDLE_TIMEOUT_US 120000000u
#define DAY_MS          UINT64_C(86400000)
#define SETTINGS_MAX    7
/* The longest delay between two attempts to connect that RFC 8305 section 8 allows. */
#define RECONNECT_US    2000000u
#define PACING_BURST_US 1000

/* ---- Schemes ---- */

typedef struct {
    const char *name, *about;
    bool multipath, migration;
    struct {
        const char *name, *value;
    } settings[SETTINGS_MAX]; /* those that differ from the transport's defaults */
} quic_scheme;

static const quic_scheme schemes[] = {
    {"sp", "single-path QUIC", .settings = {{NULL, NULL}}},
    {"cm", "QUIC connection migration (RFC 9000 section 9)", .migration = true, .settings = {{NULL, NULL}}},
    {"vanilla-mp", "multipath QUIC, min-RTT scheduler, no re-injection", .multipath = true, .settings = {{NULL, NULL}}},
    {"vanilla-mp-2021", "vanilla-mp as of 2021: no suspect state, a path is used until it is closed", .multipath = true,
     .settings = {{"suspect", "off"}}},
    /* As in the paper (sections 5.1 to 5.3). Its thresholds th(95) and th(80) are percentiles of play-time left, whose
     * values in ms are measured (`thresholds: [95, 80]` in an experiment). */
    {"xlink",
     "XLINK as the paper describes it: copies of all unacknowledged data under QoE control, ACK_MP on the fastest "
     "path, no suspect state",
     .multipath = true,
     .settings = {{"scheduler", "xlink"},
                  {"reinjection", "frame"},
                  {"copy_rule", "always"},
                  {"ack_path", "fastest"},
                  {"qoe_control", "on"},
                  {"suspect", "off"}}},
    {"xlink-lean", "this testbed's form of xlink: only copies that pay, suspect paths, ACK_MP on the original path",
     .multipath = true, .settings = {{"scheduler", "xlink"}, {"reinjection", "frame"}, {"qoe_control", "on"}}},
    /* The delay between attempts is shorter than the 250 ms that RFC 8305 section 5 recommends, because both paths are
     * opened anyway. */
    {"xlink+",
     "xlink-lean with earliest-delivery scheduling, rescue copies and raced handshakes "
     "(docs/explanation/xlink-plus.md)",
     .multipath = true,
     .settings = {{"scheduler", "earliest"},
                  {"reinjection", "frame"},
                  {"qoe_control", "on"},
                  {"rescue", "on"},
                  {"race_ms", "20"}}},
};
#define SCHEMES (sizeof schemes / sizeof schemes[0])

const char *quic_scheme_name(size_t i) {
    return i < SCHEMES ? schemes[i].name : NULL;
}

static const quic_scheme *find(const char *name) {
    for (size_t i = 0; name && i < SCHEMES; i++)
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
    return NULL;
}

void quic_settings_init(quic_settings *s) {
    *s = (quic_settings){.name = NULL};
    xl_scheme_init(&s->scheme);
    xl_limits_init(&s->limits);
    s->scheme.scheduler = s->scheme.cc = NULL;
    s->limits.max_udp_payload_bytes = QUIC_UDP_PAYLOAD_BYTES;
    s->limits.enable_ecn = s->limits.grease = true;
    s->limits.pacing_burst_us = PACING_BURST_US;
    s->limits.idle_timeout_us = IDLE_TIMEOUT_US;
    s->limits.send_buffer_bytes = 0;
    s->reconnect = QUIC_RECONNECT_NEXT;
    s->reconnect_us = RECONNECT_US;
}

bool quic_settings_choose(quic_settings *s, const char *name) {
    const quic_scheme *scheme = find(name);
    const setting_tables table = {.table = {{quic_setting_rows, s, 0}}, .count = 1};
    char unused[SETTINGS_ERROR_BYTES];
    if (!scheme)
        return false;
    xl_scheme_init(&s->scheme);
    s->scheme.cc = NULL;
    s->race_us = 0;
    s->name = scheme->name;
    s->scheme.enable_multipath = scheme->multipath;
    /* If the peer does not support multipath, the other paths are used for migration. */
    s->scheme.enable_migration = scheme->migration || scheme->multipath;
    for (size_t i = 0; i < SETTINGS_MAX && scheme->settings[i].name; i++) {
        void *into = NULL;
        const setting *row = settings_find(&table, scheme->settings[i].name, &into);
        if (!row || !setting_read(row, into, row->name, scheme->settings[i].value, unused))
            return false;
    }
    return true;
}

const char *quic_settings_problem(const quic_settings *s, bool is_simulated) {
    if (!is_simulated && xl_scheduler_is_reference(s->scheme.scheduler))
        return "this scheduler must know what the links will do, which only the simulator does (arena sim); "
               "choose another one";
    return s->scheme.t_th1_us > s->scheme.t_th2_us ? "t_th1_ms must not be greater than t_th2_ms" : NULL;
}

void quic_settings_configure(const quic_settings *s, xl_config *config) {
    config->scheme = s->scheme;
    config->limits = s->limits;
}

bool quic_settings_are_multipath(const quic_settings *s) {
    return s->scheme.enable_multipath;
}

bool quic_settings_use_all_paths(const quic_settings *s) {
    return s->scheme.enable_multipath || s->scheme.enable_migration;
}

/* ---- Settings ---- */

static bool read_scheme(void *into, const char *text, char *reason, size_t cap) {
    if (quic_settings_choose(into, text))
        return true;
    snprintf(reason, cap, "takes ");
    for (size_t i = 0; quic_scheme_name(i); i++)
        snprintf(reason + strlen(reason), cap - strlen(reason), "%s%s",
                 i == 0                    ? ""
                 : quic_scheme_name(i + 1) ? ", "
                                           : " or ",
                 quic_scheme_name(i));
    snprintf(reason + strlen(reason), cap - strlen(reason), ", not '%.40s'", text);
    return false;
}

static const char *const reconnects[] = {"off", "same", "next", NULL};         /* quic_reconnect */
static const char *const dialects[] = {"xlink", "ietf", NULL};                 /* xl_dialect */
static const char *const versions[] = {"1", "2", "both", NULL};                /* xl_versions */
static const char *const copy_rules[] = {"pays", "always", NULL};              /* reinjection_unconditional */
static const char *const ack_paths[] = {"original", "fastest", NULL};          /* xl_ack_path */
static const char *const carriers[] = {"off", "ack", "signals", "both", NULL}; /* xl_qoe_carrier */

#define FIELD(member) SETTING_FIELD(quic_settings, member)
#define SERVER        SETTING_OF_SERVER
#define PLAYER        SETTING_OF_PLAYER
#define BOTH          (SERVER | PLAYER)

const setting quic_setting_rows[] = {
    {"scheme", SETTING_OWN, .read = read_scheme, .word_at = quic_scheme_name, .sides = BOTH, .is_base = true,
     .can_reload = true, .help = "The QUIC scheme."},
    {"dialect", SETTING_CHOICE, FIELD(scheme.dialect), .words = dialects, .sides = SERVER, .fallback = "xlink",
     .help = "Multipath dialect that the server chooses if the client offers both: ietf is RFC 10069."},
    {"scheduler", SETTING_WORD, FIELD(scheme.scheduler), .word_at = xl_scheduler_name, .sides = BOTH,
     .can_reload = true, .value = "NAME", .fallback = "the scheme's",
     .help = "Scheduler of the data that this side sends: docs/reference/schedulers.md."},
    {"cc", SETTING_WORD, FIELD(scheme.cc), .word_at = xl_cc_name, .sides = BOTH, .can_reload = true, .value = "NAME",
     .fallback = "cubic-tolerant", .help = "Congestion controller of the data that this side sends."},
    {"ecn", SETTING_SWITCH, FIELD(limits.enable_ecn), .sides = BOTH,
     .fallback = "on; off in experiments and the simulator",
     .help = "Send packets as ECT(0) on paths that pass the validation of RFC 9000 section 13.4."},
    {"quic_version", SETTING_CHOICE, FIELD(limits.versions), .words = versions, .sides = BOTH, .fallback = "1",
     .help = "Version of QUIC. both: a client begins with version 1 and offers version 2 (RFC 9368, 9369), which a "
             "server chooses."},
    {"grease", SETTING_SWITCH, FIELD(limits.grease), .sides = BOTH,
     .fallback = "on; off in experiments and the simulator",
     .help = "Send values that a peer has to ignore: a reserved transport parameter, a random QUIC bit (RFC 9287), "
             "reserved streams, frames and settings of HTTP/3."},
    {"spin_bit", SETTING_SWITCH, FIELD(limits.spin_bit), .sides = BOTH, .fallback = "off",
     .help = "Show the RTT to the network by the spin bit (RFC 9000 section 17.4), but for one connection in 16."},
    {"pacing_burst_ms", SETTING_DECIMAL, FIELD(limits.pacing_burst_us), .most = 100 * 1000, .sides = SERVER,
     .value = "MS", .fallback = "1; 0 in experiments and the simulator",
     .help =
         "A path may send the bytes of this time at once, at most 65,507, where that is more than ten packets: above "
         "96 Mbit/s with the default. It saves a fifth of the processor time of a bulk transfer."},
    {"path_mtu_bytes", SETTING_WHOLE, FIELD(limits.path_mtu_bytes), .least = 1200, .most = QUIC_UDP_PAYLOAD_BYTES,
     .sides = BOTH, .value = "BYTES", .fallback = "1200",
     .help = "UDP payload that every path is known to carry. Each path is probed for larger datagrams."},
    {"reinjection", SETTING_WORD, FIELD(scheme.reinjection), .word_at = xl_reinjection_name, .sides = SERVER,
     .can_reload = true, .fallback = "the scheme's",
     .help = "Re-injection mode: which unacknowledged packets may be copied onto another path."},
    {"max_reinjections", SETTING_WHOLE, FIELD(scheme.max_reinjections), .least = 1, .most = XL_MAX_PATHS - 1,
     .sides = SERVER, .can_reload = true, .value = "N", .fallback = "1",
     .help = "Maximum number of copies of one packet, each on a different path."},
    {"copy_rule", SETTING_CHOICE, FIELD(scheme.reinjection_unconditional), .words = copy_rules, .sides = SERVER,
     .can_reload = true, .fallback = "pays",
     .help = "pays: copy a packet if the copy is expected to arrive earlier than the original. always: copy every "
             "packet that the mode and the gate allow, as in the paper."},
    {"t_th1_ms", SETTING_DECIMAL, FIELD(scheme.t_th1_us), .most = DAY_MS * 1000, .sides = SERVER, .can_reload = true,
     .value = "MS", .fallback = "500",
     .help = "The gate is open, and packets are copied, while play-time left is below this."},
    {"t_th2_ms", SETTING_DECIMAL, FIELD(scheme.t_th2_us), .most = DAY_MS * 1000, .sides = SERVER, .can_reload = true,
     .value = "MS", .fallback = "2000", .help = "The gate is closed while play-time left is above this."},
    {"qoe_control", SETTING_SWITCH, FIELD(scheme.qoe_control), .sides = SERVER, .can_reload = true,
     .fallback = "the scheme's", .help = "Gate re-injection by the double threshold. off: the gate is always open."},
    {"qoe_extrapolation", SETTING_SWITCH, FIELD(scheme.qoe_extrapolation), .sides = SERVER, .can_reload = true,
     .fallback = "on", .help = "Subtract the time since the player's last signal from play-time left."},
    {"rescue", SETTING_SWITCH, FIELD(scheme.rescue), .sides = SERVER, .can_reload = true, .fallback = "the scheme's",
     .help =
         "Even while the gate is closed, copy a packet if the copy saves much time: docs/explanation/xlink-plus.md."},
    {"rescue_gain_ms", SETTING_WHOLE, FIELD(scheme.rescue_gain_us), .least = 1, .most = 600000, .scale = 1000,
     .sides = SERVER, .can_reload = true, .value = "MS", .fallback = "50",
     .help = "How much earlier than the original a rescue copy must be expected, beside the price of its bytes."},
    {"rescue_permille", SETTING_WHOLE, FIELD(scheme.rescue_permille), .least = 1, .most = 1000, .sides = SERVER,
     .can_reload = true, .value = "N", .fallback = "15",
     .help = "Share of rescue copies: 32 kB and so many thousandths of the stream bytes sent; at most three shares."},
    {"qoe", SETTING_CHOICE, FIELD(scheme.qoe_carrier), .words = carriers, .sides = PLAYER, .fallback = "ack",
     .help =
         "Frame that carries the player's buffer level to the server: ack is ACK_MP, signals is QOE_CONTROL_SIGNALS."},
    {"ack_path", SETTING_CHOICE, FIELD(scheme.ack_path), .words = ack_paths, .sides = BOTH, .can_reload = true,
     .fallback = "original",
     .help = "Path on which ACK_MP is sent: the path that it acknowledges, or the one with the smallest RTT."},
    {"leave_ms", SETTING_WHOLE, FIELD(leave_us), .most = 600000, .scale = 1000, .sides = PLAYER, .value = "MS",
     .fallback = "0",
     .help = "Leave a connection whose requests receive nothing for this long, and connect again. 0: never."},
    {"suspect", SETTING_SWITCH, FIELD(scheme.suspect), .sides = BOTH, .can_reload = true, .fallback = "the scheme's",
     .help = "Set a path aside after two PTOs in a row while another one answers. off: use it until it is closed."},
    {"race_ms", SETTING_WHOLE, FIELD(race_us), .most = 60000, .scale = 1000, .sides = PLAYER, .value = "MS",
     .fallback = "the scheme's",
     .help = "Start a handshake on the next path as well after this long without an answer. 0: never."},
    {"reconnect", SETTING_CHOICE, FIELD(reconnect), .words = reconnects, .sides = PLAYER, .fallback = "next",
     .help = "Connect again if a connection is not confirmed in time or dies. next: on the next path. same: on the "
             "primary path. off: never."},
    {"reconnect_ms", SETTING_WHOLE, FIELD(reconnect_us), .least = 100, .most = 60000, .scale = 1000, .sides = PLAYER,
     .value = "MS", .fallback = "2000",
     .help = "Start another attempt this long after the last one began, unless a connection is confirmed."},
    {"path_management", SETTING_OWN, FIELD(limits.path_management), .read = path_management_read, .sides = BOTH,
     .fallback = "off", .pattern = "^(off|on(,(rtt|loss|degraded|recovered|abandon|reopen)=[0-9]+(\\.[0-9]{1,3})?)*)$",
     .value = "off|on[,rtt=FACTOR][,loss=PERCENT][,degraded=S][,recovered=S][,abandon=S][,reopen=S]",
     .help = "Put degraded paths on standby and abandon paths without an answer: docs/reference/paths.md."},
    {"migrate_after", SETTING_OWN, FIELD(limits), .read = migrate_after_read, .sides = PLAYER,
     .value = "silence|silence:MS|ptos:N", .pattern = "^(silence(:[0-9.]+)?|ptos:([1-9]|10))$", .fallback = "silence",
     .help = "Scheme cm: when the client leaves its path: docs/reference/paths.md."},
    {"migrate_back", SETTING_OWN, FIELD(limits), .read = migrate_back_read, .sides = PLAYER, .value = "never|S",
     .fallback = "never", .pattern = "^(never|[0-9]+(\\.[0-9]{1,3})?)$",
     .help = "Scheme cm: seconds for which the first path must answer before the client returns to it."},
    {0},
};

/* ---- Description ---- */

static json_t *describe_scheme(const quic_scheme *scheme) {
    json_t *own = json_object();
    for (size_t i = 0; i < SETTINGS_MAX && scheme->settings[i].name; i++)
        json_object_set_new(own, scheme->settings[i].name, json_string(scheme->settings[i].value));
    return json_pack("{s:s, s:s, s:b, s:b, s:o}", "name", scheme->name, "about", scheme->about, "multipath",
                     scheme->multipath, "migration", scheme->migration, "settings", own);
}

json_t *quic_settings_describe(void) {
    json_t *all = json_array(), *foresight = json_array();
    for (size_t i = 0; i < SCHEMES; i++)
        json_array_append_new(all, describe_scheme(&schemes[i]));
    for (size_t i = 0; xl_scheduler_name(i); i++)
        if (xl_scheduler_is_reference(xl_scheduler_name(i)))
            json_array_append_new(foresight, json_string(xl_scheduler_name(i)));
    return json_pack("{s:o, s:o, s:o}", "settings", settings_describe(quic_setting_rows), "schemes", all, "foresight",
                     foresight);
}

xl_credentials *quic_settings_credentials(const char *ca_file, char *error, size_t cap) {
    char *ca = ca_file ? text_file_read(ca_file, error, cap) : NULL;
    if (ca_file && !ca)
        return NULL;
    xl_credentials *credentials = xl_credentials_client(ca);
    free(ca);
    if (!credentials)
        error_set(error, cap, "%s%s", ca_file ? "no certificate in PEM form in " : "out of memory",
                  ca_file ? ca_file : "");
    return credentials;
}
