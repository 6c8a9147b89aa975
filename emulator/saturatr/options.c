#include "emulator/saturatr/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define TOKEN_VARIABLE "SATURATR_TOKEN"

const char sat_options_usage[] =
    "usage: saturatr server --listen ADDR:PORT [options]\n"
    "       saturatr client --server ADDR:PORT --path NAME:ADDR[:TECH] [--path ...] --out DIR [options]\n"
    "\n"
    "Keeps the links of several paths full in both directions, records what arrives, and writes Mahimahi traces.\n"
    "\n"
    "Both:\n"
    "  --token-file FILE      the secret that both ends know, 8 to 256 characters; else it is taken from\n"
    "                         SATURATR_TOKEN, else the server makes one and prints it\n"
    "  --memory MB            memory for records, all paths together (512)\n"
    "Server:\n"
    "  --listen ADDR:PORT     TCP and UDP; port 0: the kernel chooses, and it is printed\n"
    "  --ack-port PORT        UDP port for acknowledgements (0: the kernel chooses)\n"
    "  --max-duration S       refuse recordings that last longer (3600)\n"
    "  --once                 end after one recording\n"
    "Client:\n"
    "  --server ADDR:PORT     @:PORT is the gateway of mpshell\n"
    "  --path NAME:ADDR[:TECH]  a path: its name, the local address that sends over it (@I: path I of mpshell; IPv6 "
    "in\n"
    "                         brackets), and its technology: 5g-sa, 5g-nsa, wifi, lte (wifi if NAME is that, else "
    "lte)\n"
    "  --ack-via ADDR         local address of a reliable interface for all acknowledgements; without it they use the\n"
    "                         recorded paths, on a separate port\n"
    "  --direction D          both, up or down (both)\n"
    "  --duration S           length of the recording (60)\n"
    "  --ramp S               fill the links for so long at least before the recording starts (1)\n"
    "  --ramp-most S          start then, whether the links are full or not (10)\n"
    "  --packet-bytes N       IP packets of data (1500, the size that fills an opportunity of 1504)\n"
    "  --out DIR              where the recording goes\n"
    "  --name NAME, --scenario TEXT, --licence TEXT, --note TEXT\n"
    "                         what index.yaml and session.json say about it (the directory's name, recorded, "
    "unstated)\n";

__attribute__((format(printf, 2, 3))) static int fail(char *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, SAT_ERROR_SIZE, format, args);
    va_end(args);
    return -1;
}

static bool parse_number(const char *text, double least, double most, double *value) {
    char *end;
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.') {
        return false;
    }
    *value = strtod(text, &end);
    return *end == '\0' && isfinite(*value) && *value >= least && *value <= most;
}

static int parse_seconds(const char *option, const char *text, double least, double most, uint64_t *out_us,
                         char *error) {
    double value;
    if (!parse_number(text, least, most, &value)) {
        return fail(error, "%s %s is not a time in seconds (%g to %g)", option, text, least, most);
    }
    *out_us = (uint64_t)llround(value * 1000.0) * 1000u; /* whole ms: a trace's unit */
    return 0;
}

static int parse_count(const char *option, const char *text, double least, double most, uint64_t *out, char *error) {
    double value;
    if (!parse_number(text, least, most, &value) || floor(value) < value) {
        return fail(error, "%s %s is not a whole number from %.0f to %.0f", option, text, least, most);
    }
    *out = (uint64_t)value;
    return 0;
}

/* "@I" stands for $MPSHELL_PATH_<I>_ADDR. */
static bool parse_local(const char *text, struct sat_address *out) {
    char variable[48];
    if (text[0] == '@') {
        if (strspn(text + 1, "0123456789") != strlen(text + 1) || strlen(text) < 2 || strlen(text) > 4) {
            return false;
        }
        snprintf(variable, sizeof(variable), "MPSHELL_PATH_%s_ADDR", text + 1);
        text = getenv(variable);
    }
    return text != NULL && sat_address_parse(text, false, out);
}

/* "@:PORT" stands for $MPSHELL_GATEWAY:PORT. */
static int parse_server(const char *option, const char *text, struct sat_address *out, char *error) {
    char expanded[SAT_ADDRESS_TEXT];
    const char *gateway = getenv("MPSHELL_GATEWAY");
    if (text[0] == '@') {
        if (gateway == NULL) {
            return fail(error, "%s %s needs MPSHELL_GATEWAY; run inside mpshell, or write the address", option, text);
        }
        snprintf(expanded, sizeof(expanded), strchr(gateway, ':') == NULL ? "%s%s" : "[%s]%s", gateway, text + 1);
        text = expanded;
    }
    return sat_address_parse(text, true, out)
               ? 0
               : fail(error, "%s %s is not ADDR:PORT, for example 192.0.2.1:7000 or [2001:db8::1]:7000", option, text);
}

static const char *known_technology(const char *text) {
    static const char *const known[] = {"5g-sa", "5g-nsa", "wifi", "lte"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], text) == 0) {
            return known[i];
        }
    }
    return NULL;
}

static int parse_path_name(struct sat_options *options, const char *text, size_t length, char *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    struct sat_path_options *path = &options->paths[options->path_count];
    if (length == 0 || length >= SAT_NAME_SIZE || strspn(text, allowed) < length) {
        return fail(error, "--path %s: the name before the colon must be 1 to 15 of a-z 0-9 -", text);
    }
    memcpy(path->name, text, length);
    path->name[length] = '\0';
    for (size_t i = 0; i < options->path_count; i++) {
        if (strcmp(options->paths[i].name, path->name) == 0) {
            return fail(error, "two paths are named %s", path->name);
        }
    }
    return 0;
}

/* NAME:ADDR[:TECH]; an IPv6 address is in brackets. */
static int parse_path(struct sat_options *options, const char *text, char *error) {
    if (options->path_count == SAT_MAX_PATHS) {
        return fail(error, "more than %u paths", SAT_MAX_PATHS);
    }
    const char *colon = strchr(text, ':');
    if (colon == NULL) {
        return fail(error, "--path %s is not NAME:ADDR[:TECH], for example lte:192.0.2.7", text);
    }
    if (parse_path_name(options, text, (size_t)(colon - text), error) != 0) {
        return -1;
    }
    struct sat_path_options *path = &options->paths[options->path_count];
    const char *address = colon + 1;
    const char *close = address[0] == '[' ? strchr(address, ']') : NULL;
    const char *technology = strchr(close != NULL ? close : address, ':');
    char host[SAT_ADDRESS_TEXT];
    snprintf(host, sizeof(host), "%.*s", technology == NULL ? (int)strlen(address) : (int)(technology - address),
             address);
    if (!parse_local(host, &path->local)) {
        return fail(error, "--path %s: %s is not an IP address of this machine (nor a path of mpshell)", text, host);
    }
    path->technology = technology != NULL                ? known_technology(technology + 1)
                       : strcmp(path->name, "wifi") == 0 ? "wifi"
                                                         : "lte";
    if (path->technology == NULL) {
        return fail(error, "--path %s: %s is not one of 5g-sa, 5g-nsa, wifi, lte", text, technology + 1);
    }
    options->path_count++;
    return 0;
}

static int check_token(struct sat_options *options, const char *text, const char *whence, char *error) {
    size_t length = strcspn(text, "\r\n");
    if (length < SAT_TOKEN_LEAST || length > SAT_TOKEN_MOST) {
        return fail(error, "the token in %s has %zu characters; use %u to %u", whence, length, SAT_TOKEN_LEAST,
                    SAT_TOKEN_MOST);
    }
    memcpy(options->token, text, length);
    options->token[length] = '\0';
    return 0;
}

static int read_token(struct sat_options *options, const char *file, char *error) {
    char text[SAT_TOKEN_MOST + 3] = {0};
    FILE *stream = fopen(file, "re");
    if (stream == NULL || fgets(text, sizeof(text), stream) == NULL) {
        int rc =
            fail(error, "cannot read the token from %s: %s", file, stream == NULL ? strerror(errno) : "it is empty");
        if (stream != NULL) {
            fclose(stream);
        }
        return rc;
    }
    fclose(stream);
    return check_token(options, text, file, error);
}

static int make_token(struct sat_options *options, char *error) {
    uint8_t random[SAT_NONCE_BYTES];
    if (!sat_auth_random(random, sizeof(random))) {
        return fail(error, "cannot make a token: there is no randomness");
    }
    sat_hex_write(random, sizeof(random), options->token);
    return 0;
}

enum {
    OPT_TOKEN = 256,
    OPT_MEMORY,
    OPT_HELP,
    OPT_LISTEN,
    OPT_ACK_PORT,
    OPT_MAX_DURATION,
    OPT_ONCE,
    OPT_SERVER,
    OPT_PATH,
    OPT_ACK_VIA,
    OPT_DIRECTION,
    OPT_DURATION,
    OPT_RAMP,
    OPT_RAMP_MOST,
    OPT_PACKET_BYTES,
    OPT_OUT,
    OPT_NAME,
    OPT_SCENARIO,
    OPT_LICENCE,
    OPT_NOTE
};

static const struct option known_of_server[] = {
    {"token-file", required_argument, NULL, OPT_TOKEN},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"help", no_argument, NULL, OPT_HELP},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"ack-port", required_argument, NULL, OPT_ACK_PORT},
    {"max-duration", required_argument, NULL, OPT_MAX_DURATION},
    {"once", no_argument, NULL, OPT_ONCE},
    {NULL, 0, NULL, 0},
};
static const struct option known_of_client[] = {
    {"token-file", required_argument, NULL, OPT_TOKEN},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"help", no_argument, NULL, OPT_HELP},
    {"server", required_argument, NULL, OPT_SERVER},
    {"path", required_argument, NULL, OPT_PATH},
    {"ack-via", required_argument, NULL, OPT_ACK_VIA},
    {"direction", required_argument, NULL, OPT_DIRECTION},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"ramp", required_argument, NULL, OPT_RAMP},
    {"ramp-most", required_argument, NULL, OPT_RAMP_MOST},
    {"packet-bytes", required_argument, NULL, OPT_PACKET_BYTES},
    {"out", required_argument, NULL, OPT_OUT},
    {"name", required_argument, NULL, OPT_NAME},
    {"scenario", required_argument, NULL, OPT_SCENARIO},
    {"licence", required_argument, NULL, OPT_LICENCE},
    {"note", required_argument, NULL, OPT_NOTE},
    {NULL, 0, NULL, 0},
};

static int parse_direction(struct sat_options *options, const char *text, char *error) {
    options->up = strcmp(text, "down") != 0;
    options->down = strcmp(text, "up") != 0;
    return options->up != options->down || strcmp(text, "both") == 0
               ? 0
               : fail(error, "--direction %s is not one of both, up, down", text);
}

/* A name that docs/traces.md allows for a pair: letters, digits, - _ . */
static int parse_name(struct sat_options *options, const char *text, char *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (text[0] == '\0' || strlen(text) > 64 || strspn(text, allowed) != strlen(text) ||
        strchr("-_.", text[0]) != NULL) {
        return fail(error, "\"%s\" cannot name the recording; give --name 1 to 64 letters, digits, - _ .", text);
    }
    options->name = text;
    return 0;
}

/* Text that goes into the recording's files, which are UTF-8. */
static int parse_text(const char *option, const char *text, const char **out, char *error) {
    json_t *value = json_string(text);
    bool good = value != NULL && text[0] != '\0';
    json_decref(value);
    *out = text;
    return good ? 0 : fail(error, "%s is empty or not UTF-8", option);
}

static int parse_number_option(struct sat_options *options, int option, char *error) {
    uint64_t count = 0;
    int rc;
    switch (option) {
    case OPT_MEMORY:
        rc = parse_count("--memory", optarg, 1, 1 << 20, &count, error);
        options->memory_bytes = count << 20;
        return rc;
    case OPT_ACK_PORT:
        rc = parse_count("--ack-port", optarg, 0, UINT16_MAX, &count, error);
        options->ack_port = (uint16_t)count;
        return rc;
    case OPT_PACKET_BYTES:
        rc = parse_count("--packet-bytes", optarg, SAT_PACKET_LEAST, SAT_PACKET_MOST, &count, error);
        options->packet_bytes = (size_t)count;
        return rc;
    case OPT_MAX_DURATION:
        return parse_seconds("--max-duration", optarg, 1, 86400, &options->max_duration_us, error);
    case OPT_DURATION:
        return parse_seconds("--duration", optarg, 0.1, 86400, &options->duration_us, error);
    case OPT_RAMP:
        return parse_seconds("--ramp", optarg, 0, 600, &options->ramp_us, error);
    default:
        return parse_seconds("--ramp-most", optarg, 0, 600, &options->ramp_most_us, error);
    }
}

static int parse_option(struct sat_options *options, int option, char **argv, char *error) {
    switch (option) {
    case OPT_HELP:
        options->help = true;
        return 0;
    case OPT_TOKEN:
        return read_token(options, optarg, error);
    case OPT_LISTEN:
        return parse_server("--listen", optarg, &options->server, error);
    case OPT_SERVER:
        return parse_server("--server", optarg, &options->server, error);
    case OPT_ONCE:
        options->once = true;
        return 0;
    case OPT_PATH:
        return parse_path(options, optarg, error);
    case OPT_ACK_VIA:
        options->has_ack_via = true;
        return parse_local(optarg, &options->ack_via)
                   ? 0
                   : fail(error, "--ack-via %s is not an IP address of this machine (nor a path of mpshell)", optarg);
    case OPT_DIRECTION:
        return parse_direction(options, optarg, error);
    case OPT_OUT:
        options->out = optarg;
        return 0;
    case OPT_NAME:
        return parse_name(options, optarg, error);
    case OPT_SCENARIO:
        return parse_text("--scenario", optarg, &options->scenario, error);
    case OPT_LICENCE:
        return parse_text("--licence", optarg, &options->licence, error);
    case OPT_NOTE:
        return parse_text("--note", optarg, &options->note, error);
    case ':':
        return fail(error, "option %s needs a value; see saturatr --help", argv[optind - 1]);
    case '?':
        return fail(error, "unknown option %s; see saturatr --help", argv[optind - 1]);
    default:
        return parse_number_option(options, option, error);
    }
}

/* The name of a recording is that of its directory, if nothing else is said. */
static int default_name(struct sat_options *options, char *error) {
    static char name[65];
    size_t end = strlen(options->out);
    while (end > 1 && options->out[end - 1] == '/') {
        end--;
    }
    size_t start = end;
    while (start > 0 && options->out[start - 1] != '/') {
        start--;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(end - start), options->out + start);
    return parse_name(options, name, error);
}

static int complete_client(struct sat_options *options, char *error) {
    if (options->path_count == 0) {
        return fail(error, "no path; give --path NAME:ADDR at least once");
    }
    if (options->out == NULL || options->out[0] == '\0') {
        return fail(error, "no place for the recording; give --out DIR");
    }
    if (options->token[0] == '\0') {
        return fail(error, "no token; set " TOKEN_VARIABLE " or give --token-file with what the server has or printed");
    }
    for (size_t k = 0; k < options->path_count; k++) {
        if (options->paths[k].local.at.ss_family != options->server.at.ss_family) {
            return fail(error, "path %s and the server have addresses of different families", options->paths[k].name);
        }
    }
    if (options->has_ack_via && options->ack_via.at.ss_family != options->server.at.ss_family) {
        return fail(error, "--ack-via and the server have addresses of different families");
    }
    return options->name == NULL ? default_name(options, error) : 0;
}

static void set_defaults(struct sat_options *options) {
    options->memory_bytes = UINT64_C(512) << 20;
    options->duration_us = 60000000u;
    options->max_duration_us = 3600000000u;
    options->up = options->down = true;
    options->ramp_us = 1000000u;
    options->ramp_most_us = 10000000u;
    options->packet_bytes = SAT_PACKET_MOST;
    options->scenario = "recorded";
    options->licence = "unstated";
}

int sat_options_parse(struct sat_options *options, int argc, char **argv, char *error) {
    memset(options, 0, sizeof(*options));
    set_defaults(options);
    const char *role = argc > 1 ? argv[1] : "";
    if (strcmp(role, "--help") == 0 || strcmp(role, "-h") == 0) {
        options->help = true;
        return 0;
    }
    if (role[0] == '\0') {
        return fail(error, "say server or client; see saturatr --help");
    }
    if (strcmp(role, "server") != 0 && strcmp(role, "client") != 0) {
        return fail(error, "\"%s\" is not one of server, client; see saturatr --help", role);
    }
    options->role = role[0] == 's' ? SAT_SERVER : SAT_CLIENT;
    const struct option *known = options->role == SAT_SERVER ? known_of_server : known_of_client;
    optind = 0; /* starts getopt afresh */
    for (int option = getopt_long(argc - 1, argv + 1, "+:", known, NULL); option != -1;
         option = getopt_long(argc - 1, argv + 1, "+:", known, NULL)) {
        if (parse_option(options, option, argv + 1, error) != 0) {
            return -1;
        }
        if (options->help) {
            return 0;
        }
    }
    if (optind < argc - 1) {
        return fail(error, "\"%s\" is no option; see saturatr --help", argv[1 + optind]);
    }
    if (options->server.length == 0) {
        return fail(error, "no address; give %s ADDR:PORT", options->role == SAT_SERVER ? "--listen" : "--server");
    }
    const char *token = getenv(TOKEN_VARIABLE);
    if (options->token[0] == '\0' && token != NULL && check_token(options, token, TOKEN_VARIABLE, error) != 0) {
        return -1;
    }
    if (options->role == SAT_CLIENT) {
        return complete_client(options, error);
    }
    return options->token[0] == '\0' ? make_token(options, error) : 0;
}
