#include "emulator/saturatr/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/net.h"
#include "base/numbers.h"
#include "base/settings.h"
#include "base/technology.h"
#include "schemes/path_grammars.h"

#define TOKEN_VARIABLE  "SATURATR_TOKEN"
#define DAY_MS          UINT64_C(86400000)
#define RAMP_MOST_MS    600000
#define NAME_RULE       "1 to 64 letters, digits, - _ ."
#define TRAIN_PACKETS   20u
#define EVERY_US        200000u
#define PATH_TEXT_BYTES 96

_Static_assert(SAT_ERROR_SIZE >= SETTINGS_ERROR_BYTES, "an error of settings has room");

#define fail(error, ...) error_set(error, SAT_ERROR_SIZE, __VA_ARGS__)

/* ---- Settings with a form of their own ---- */

static bool take_path_name(sat_options *options, const char *name, char *reason, size_t cap) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    sat_path_options *path = &options->paths[options->path_count];
    if (strlen(name) >= SAT_NAME_SIZE || strspn(name, allowed) != strlen(name))
        return error_set(reason, cap, "'%.60s': the name before the colon must be 1 to 15 of a-z 0-9 -", name);
    memcpy(path->name, name, strlen(name) + 1);
    for (size_t i = 0; i < options->path_count; i++)
        if (strcmp(options->paths[i].name, path->name) == 0)
            return error_set(reason, cap, "gives two paths the name '%s'", path->name);
    return true;
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    sat_options *options = into;
    sat_path_options *path = &options->paths[options->path_count];
    char copy[PATH_TEXT_BYTES], *address = NULL, *given = NULL;
    xl_technology technology = XL_TECH_LTE;
    if (options->path_count == SAT_MAX_PATHS)
        return error_set(reason, cap, "may be given %u times", SAT_MAX_PATHS);
    snprintf(copy, sizeof copy, "%s", text);
    if (strlen(text) >= sizeof copy || !path_split(copy, &address, &given))
        return error_set(reason, cap, "takes NAME:ADDR[:TECH], for example lte:192.0.2.7, not '%.60s'", text);
    if (!take_path_name(options, copy, reason, cap) || !net_parse_local(address, &path->local, reason, cap))
        return false;
    if (given && !technology_parse(given, &technology))
        return error_set(reason, cap, "takes one of " TECHNOLOGY_LIST " as technology, not '%.20s'", given);
    path->technology = technology_name(given || strcmp(copy, "wifi") != 0 ? technology : XL_TECH_WIFI);
    options->path_count++;
    return true;
}

/* IPv6 may be in brackets, as in --path. */
static bool read_local(void *into, const char *text, char *reason, size_t cap) {
    char copy[PATH_TEXT_BYTES];
    const size_t length = strlen(text);
    const bool is_bracketed = length > 2 && length < sizeof copy && text[0] == '[' && text[length - 1] == ']';
    snprintf(copy, sizeof copy, "%.*s", is_bracketed ? (int)length - 2 : (int)sizeof copy, text + is_bracketed);
    return net_parse_local(copy, into, reason, cap);
}

static bool read_direction(void *into, const char *text, char *reason, size_t cap) {
    sat_options *options = into;
    options->up = strcmp(text, "down") != 0;
    options->down = strcmp(text, "up") != 0;
    return options->up != options->down || strcmp(text, "both") == 0 ||
           error_set(reason, cap, "takes both, up or down, not '%.60s'", text);
}

/* Whether docs/reference/traces.md allows the name for a pair: letters, digits, - _ . */
static bool is_name(const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return text[0] != '\0' && strlen(text) <= SAT_RECORDING_NAME_MOST && strspn(text, allowed) == strlen(text) &&
           !strchr("-_.", text[0]);
}

static bool read_name(void *into, const char *text, char *reason, size_t cap) {
    *(const char **)into = text;
    return is_name(text) || error_set(reason, cap, "takes " NAME_RULE ", not '%.80s'", text);
}

/* Reads a text for the recording's files, which are UTF-8. */
static bool read_text(void *into, const char *text, char *reason, size_t cap) {
    json_t *value = json_string(text);
    const bool good = value && text[0] != '\0';
    json_decref(value);
    *(const char **)into = text;
    return good || error_set(reason, cap, "is empty or not UTF-8");
}

/* ---- The tables ---- */

#define FIELD(member) SETTING_FIELD(sat_options, member)
/* Seconds in steps of 1 ms, the unit of traces. */
#define SECONDS(member) SETTING_DECIMAL, FIELD(member), .scale = 1000, .value = "S"

static const setting rows_of_both[] = {
    {"token_file", SETTING_TEXT, FIELD(token_file), .value = "FILE",
     .help = "File with the shared secret, 8 to 256 characters. Default: the value of " TOKEN_VARIABLE
             "; else the server makes one and prints it."},
    {"memory", SETTING_WHOLE, FIELD(memory_bytes), .least = 1, .most = 1 << 20, .scale = 1 << 20, .value = "MB",
     .fallback = "512", .help = "Memory for the records of all paths."},
    {0},
};

static const setting rows_of_server[] = {
    {"listen", SETTING_OWN, FIELD(server), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Address for TCP and UDP. Port 0: the kernel chooses, and the server prints it."},
    {"ack_port", SETTING_WHOLE, FIELD(ack_port), .most = UINT16_MAX, .value = "PORT", .fallback = "0",
     .help = "UDP port for acknowledgements. 0: the kernel chooses."},
    {"max_duration", SECONDS(max_duration_us), .least = 1000, .most = DAY_MS, .fallback = "3600",
     .help = "Maximum length of a recording. Longer ones are refused."},
    {"once", SETTING_FLAG, FIELD(once), .help = "Exit after one recording."},
    {0},
};

/* Reads N,N,...: numbers in ascending order. */
static bool read_sizes(void *into, const char *text, char *reason, size_t cap) {
    sat_sizes *sizes = into;
    const char *at = text;
    for (bool more = true; more;) {
        const size_t length = strcspn(at, ",");
        uint64_t bytes;
        if (!number_parse(at, length, &bytes) || bytes < SAT_SIZE_LEAST || bytes > SAT_SIZE_MOST ||
            sizes->count == SAT_SIZES_MOST || (sizes->count > 0 && bytes <= sizes->bytes[sizes->count - 1]))
            return error_set(reason, cap,
                             "takes up to %u ascending sizes from %u to %u, for example 100,400,800, not "
                             "'%.60s'",
                             SAT_SIZES_MOST, SAT_SIZE_LEAST, SAT_SIZE_MOST, text);
        sizes->bytes[sizes->count++] = (uint32_t)bytes;
        more = at[length] != '\0';
        at += length + more;
    }
    return true;
}

static const char *const modes[] = {"heavy", "light", NULL};

static const setting rows_of_client[] = {
    {"server", SETTING_OWN, FIELD(server), .read = net_read_gateway, .value = "ADDR:PORT",
     .help = "Address of the server. @:PORT is the gateway of mpshell."},
    {"path", SETTING_OWN, .read = read_path, .value = "NAME:ADDR[:TECH]",
     .help = "A path: name, local address (@I: path I of mpshell; IPv6 in brackets), technology: " TECHNOLOGY_LIST
             " (default: wifi if NAME is wifi, else lte)."},
    {"ack_via", SETTING_OWN, FIELD(ack_via), .read = read_local, .value = "ADDR",
     .help = "Local address of a reliable interface for all acknowledgements. Without it they use the recorded paths, "
             "on a separate port."},
    {"direction", SETTING_OWN, .read = read_direction, .value = "both|up|down", .fallback = "both",
     .help = "Direction to record."},
    {"mode", SETTING_CHOICE, FIELD(mode), .words = modes, .fallback = "heavy",
     .help = "heavy: keep the links full, and write Mahimahi traces. light: send short trains over idle links, and "
             "write light traces."},
    {"train", SETTING_WHOLE, FIELD(train_packets), .least = 1, .most = SAT_TRAIN_MOST, .value = "N", .fallback = "20",
     .help = "Light mode: packets of a train, at most 10 for each ms of --every."},
    {"every", SETTING_WHOLE, FIELD(every_us), .least = SAT_EVERY_LEAST_US / 1000, .most = SAT_EVERY_MOST_US / 1000,
     .scale = 1000, .value = "MS", .fallback = "200",
     .help = "Light mode: from the start of a train, or a single packet, to the next."},
    {"sizes", SETTING_OWN, FIELD(sizes), .read = read_sizes, .value = "N,N,...",
     .help = "Light mode: send single packets of these sizes in turn, and no trains; write how much later each size "
             "arrives than --packet-bytes, which is the last size. Up to 16, from 100 to 1500, ascending."},
    {"duration", SECONDS(duration_us), .least = 100, .most = DAY_MS, .fallback = "60",
     .help = "Length of the recording."},
    {"ramp", SECONDS(ramp_us), .most = RAMP_MOST_MS, .fallback = "1",
     .help = "Heavy mode: fill the links for at least this long before the recording starts."},
    {"ramp_most", SECONDS(ramp_most_us), .most = RAMP_MOST_MS, .fallback = "10",
     .help = "Heavy mode: start after this time at the latest, even if the links are not full."},
    {"packet_bytes", SETTING_WHOLE, FIELD(packet_bytes), .least = SAT_PACKET_LEAST, .most = SAT_PACKET_MOST,
     .value = "N", .fallback = "1500, which fills an opportunity of 1504", .help = "Size of the IP packets with data."},
    {"out", SETTING_TEXT, FIELD(out), .value = "DIR", .help = "Directory of the recording."},
    {"name", SETTING_OWN, FIELD(name), .read = read_name, .value = "NAME", .fallback = "the directory's",
     .help = "Name of the recording in index.yaml and session.json."},
    {"scenario", SETTING_OWN, FIELD(scenario), .read = read_text, .value = "TEXT", .fallback = "recorded",
     .help = "Scenario in index.yaml and session.json."},
    {"licence", SETTING_OWN, FIELD(licence), .read = read_text, .value = "TEXT", .fallback = "unstated",
     .help = "Licence in index.yaml and session.json."},
    {"note", SETTING_OWN, FIELD(note), .read = read_text, .value = "TEXT",
     .help = "Remark in index.yaml and session.json."},
    {0},
};

void sat_options_print_usage(void) {
    printf("usage: saturatr server --listen ADDR:PORT [options]\n"
           "       saturatr client --server ADDR:PORT --path NAME:ADDR[:TECH] [--path ...] --out DIR [options]\n"
           "\n"
           "Keeps the links of several paths full in both directions, records the arrivals, and writes "
           "Mahimahi traces.\nWith --mode light it sends short trains of packets instead, and writes light "
           "traces.\n"
           "\n"
           "Both:\n");
    settings_help(stdout, rows_of_both, 0);
    printf("Server:\n");
    settings_help(stdout, rows_of_server, 0);
    printf("Client:\n");
    settings_help(stdout, rows_of_client, 0);
}

/* ---- The token ---- */

static bool check_token(sat_options *options, const char *text, const char *whence, char *error) {
    const size_t length = strcspn(text, "\r\n");
    if (length < SAT_TOKEN_LEAST || length > SAT_TOKEN_MOST)
        return fail(error, "the token in %s has %zu characters; use %u to %u.", whence, length, SAT_TOKEN_LEAST,
                    SAT_TOKEN_MOST);
    memcpy(options->token, text, length);
    options->token[length] = '\0';
    return true;
}

static bool read_token_file(sat_options *options, char *error) {
    char text[SAT_TOKEN_MOST + 3] = {0};
    FILE *stream = fopen(options->token_file, "re");
    const bool read = stream && fgets(text, sizeof text, stream);
    if (!read)
        fail(error, "cannot read the token from %s: %s.", options->token_file,
             !stream ? strerror(errno) : "it is empty");
    if (stream)
        fclose(stream);
    return read && check_token(options, text, options->token_file, error);
}

static bool make_token(sat_options *options, char *error) {
    uint8_t random[SAT_NONCE_BYTES];
    if (!sat_auth_random(random, sizeof random))
        return fail(error, "cannot make a token: there is no randomness.");
    hex_write(random, sizeof random, options->token);
    return true;
}

static bool find_token(sat_options *options, char *error) {
    const char *given = getenv(TOKEN_VARIABLE);
    if (options->token_file)
        return read_token_file(options, error);
    return !given || check_token(options, given, TOKEN_VARIABLE, error);
}

/* ---- All together ---- */

/* Without --name, the name of a recording is that of its directory. */
static bool take_directory_name(sat_options *options, char *error) {
    static char name[SAT_RECORDING_NAME_MOST + 2];
    size_t end = strlen(options->out);
    while (end > 1 && options->out[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && options->out[start - 1] != '/')
        start--;
    snprintf(name, sizeof name, "%.*s", (int)(end - start), options->out + start);
    options->name = name;
    return is_name(name) || fail(error, "'%s' cannot name the recording; give --name " NAME_RULE, name);
}

/* Adds --packet-bytes, the reference, to the sizes. A train is one packet. */
static bool complete_sizes(sat_options *options, char *error) {
    sat_sizes *sizes = &options->sizes;
    if (options->train_packets > 0)
        return fail(error, "--sizes sends packets alone and no trains; leave out --train.");
    if (sizes->bytes[sizes->count - 1] < options->packet_bytes && sizes->count < SAT_SIZES_MOST)
        sizes->bytes[sizes->count++] = (uint32_t)options->packet_bytes;
    options->train_packets = 1;
    return sat_sizes_are_allowed(sizes, options->packet_bytes) ||
           fail(error, "--sizes may have %u sizes, --packet-bytes (%zu) included, which must be the largest.",
                SAT_SIZES_MOST, options->packet_bytes);
}

static bool complete_mode(sat_options *options, char *error) {
    if (options->mode == SAT_HEAVY)
        return (options->train_packets == 0 && options->every_us == 0 && options->sizes.count == 0) ||
               fail(error, "--train, --every and --sizes are of light recordings; give --mode light.");
    if (options->sizes.count > 0 && !complete_sizes(options, error))
        return false;
    options->train_packets = options->train_packets > 0 ? options->train_packets : TRAIN_PACKETS;
    options->every_us = options->every_us > 0 ? options->every_us : EVERY_US;
    return sat_train_is_allowed(options->train_packets, options->every_us) ||
           fail(error, "trains of %u packets each %u ms are more than %u packets a ms; raise --every or lower --train.",
                options->train_packets, (unsigned)(options->every_us / 1000), SAT_TRAIN_MOST_PER_MS);
}

static bool complete_client(sat_options *options, char *error) {
    if (!complete_mode(options, error))
        return false;
    if (options->path_count == 0)
        return fail(error, "no path; give --path NAME:ADDR at least once.");
    if (!options->out)
        return fail(error, "no place for the recording; give --out DIR.");
    if (options->token[0] == '\0')
        return fail(error,
                    "no token; set " TOKEN_VARIABLE " or give --token-file with what the server has or printed.");
    for (size_t k = 0; k < options->path_count; k++)
        if (options->paths[k].local.family != options->server.family)
            return fail(error, "path %s and the server have addresses of different families.", options->paths[k].name);
    if (options->ack_via.family && options->ack_via.family != options->server.family)
        return fail(error, "--ack-via and the server have addresses of different families.");
    return options->name || take_directory_name(options, error);
}

static bool complete(sat_options *options, char *error) {
    const bool is_client = options->role == SAT_CLIENT;
    if (options->server.family == 0)
        return fail(error, "no address; give %s ADDR:PORT.", is_client ? "--server" : "--listen");
    if (!find_token(options, error))
        return false;
    if (is_client)
        return complete_client(options, error);
    return options->token[0] != '\0' || make_token(options, error);
}

static bool read_role(sat_options *options, const char *role, char *error) {
    options->help = strcmp(role, "--help") == 0 || strcmp(role, "-h") == 0;
    options->role = strcmp(role, "client") == 0 ? SAT_CLIENT : SAT_SERVER;
    if (role[0] == '\0')
        return fail(error, "say server or client; see --help.");
    return options->help || options->role == SAT_CLIENT || strcmp(role, "server") == 0 ||
           fail(error, "'%.60s' is not one of server, client; see --help.", role);
}

bool sat_options_parse(sat_options *options, int argc, char **argv, char *error) {
    *options = (sat_options){
        .memory_bytes = UINT64_C(512) << 20,
        .duration_us = 60000000,
        .max_duration_us = 3600000000,
        .up = true,
        .down = true,
        .ramp_us = 1000000,
        .ramp_most_us = 10000000,
        .packet_bytes = SAT_PACKET_MOST,
        .scenario = "recorded",
        .licence = "unstated",
    };
    if (!read_role(options, argc > 1 ? argv[1] : "", error) || options->help)
        return options->help;
    const setting_tables s = {.table = {{rows_of_both, options, 0},
                                        {options->role == SAT_CLIENT ? rows_of_client : rows_of_server, options, 0}},
                              .count = 2};
    if (!settings_read_args(&s, argc - 1, argv + 1, &options->help, NULL, error) || options->help)
        return options->help;
    return complete(options, error);
}
