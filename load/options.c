#include "load/options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "http/http1.h"
#include "http/net.h"
#include "http/quic_scheme.h"

const char *load_options_usage(void) {
    return "usage: xlink-load --server ADDR:PORT --path ADDR[/PREFIX] [--path ...] [options]\n"
           "  --path ADDR[/PREFIX]   source address of path k; with a prefix client i has ADDR + i\n"
           "  --connections N (100), --concurrent N (all)\n"
           "  --interval-us N        between the starts of two connections (0)\n"
           "  --url PATH (/synthetic/100000), --requests N (1) each, --pause-ms MS (0) between them;\n"
           "                         0 requests: until SIGTERM, which lets each connection finish the one it is at\n"
           "  --insecure | --ca FILE do not verify the server's certificate, or against these; it names ADDR\n"
           "  --scheme NAME (vanilla-mp)\n"
           "  --seed N               random choices and keys follow from N: a run to repeat, not for deployment\n"
           "  --ping-ms MS           each connection makes itself heard that often (0: never)\n"
           "  --time-limit S (60), --out FILE.jsonl\n";
}

enum {
    OPT_SERVER = 256,
    OPT_PATH,
    OPT_CONNECTIONS,
    OPT_CONCURRENT,
    OPT_INTERVAL,
    OPT_URL,
    OPT_REQUESTS,
    OPT_PAUSE,
    OPT_SCHEME,
    OPT_CA,
    OPT_INSECURE,
    OPT_SEED,
    OPT_PING,
    OPT_TIME_LIMIT,
    OPT_OUT,
    OPT_HELP
};

static const struct option long_options[] = {
    {"server", required_argument, NULL, OPT_SERVER},
    {"path", required_argument, NULL, OPT_PATH},
    {"connections", required_argument, NULL, OPT_CONNECTIONS},
    {"concurrent", required_argument, NULL, OPT_CONCURRENT},
    {"interval-us", required_argument, NULL, OPT_INTERVAL},
    {"url", required_argument, NULL, OPT_URL},
    {"requests", required_argument, NULL, OPT_REQUESTS},
    {"pause-ms", required_argument, NULL, OPT_PAUSE},
    {"scheme", required_argument, NULL, OPT_SCHEME},
    {"ca", required_argument, NULL, OPT_CA},
    {"insecure", no_argument, NULL, OPT_INSECURE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"ping-ms", required_argument, NULL, OPT_PING},
    {"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
    {"out", required_argument, NULL, OPT_OUT},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

__attribute__((format(printf, 2, 3))) static bool fail(char *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, LOAD_ERROR_BYTES, format, args);
    va_end(args);
    return false;
}

static bool take_number(int option, const char *text, uint64_t least, uint64_t most, uint64_t scale, uint64_t *out,
                        char *error) {
    const char *name = long_options[option - OPT_SERVER].name;
    if (!http1_parse_number(text, strlen(text), out) || *out < least || *out > most) {
        return fail(error, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'.", name, least, most,
                    text);
    }
    *out *= scale;
    return true;
}

static bool take_path(load_plan *p, const char *text, char *error) {
    char address[64];
    size_t len = strcspn(text, "/");
    if (p->paths == XL_MAX_PATHS) {
        return fail(error, "at most %d --path.", XL_MAX_PATHS);
    }
    snprintf(address, sizeof address, "%.*s", (int)(len < sizeof address ? len : 0), text);
    xl_addr *a = &p->path[p->paths];
    bool ok = net_parse_ip(address, a);
    uint64_t prefix = 128;
    if (ok && text[len] == '/') {
        ok = a->family == 4 && http1_parse_number(text + len + 1, strlen(text + len + 1), &prefix) && prefix <= 32;
    }
    if (!ok) {
        return fail(error, "--path takes an IP address, an IPv4 one perhaps with a prefix length, not '%s'.", text);
    }
    p->prefix[p->paths++] = (unsigned)prefix;
    return true;
}

static bool take_scheme(load_plan *p, const char *name, char *error) {
    xl_config scratch;
    xl_config_init(&scratch);
    p->scheme = name;
    if (quic_scheme_apply(name, &scratch)) {
        return true;
    }
    char known[128] = "";
    for (size_t i = 0; quic_scheme_names[i] != NULL; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", quic_scheme_names[i]);
    }
    return fail(error, "'%s' is not a scheme; known are %s.", name, known);
}

static bool take_option(load_options *o, int option, const char *value, char *error) {
    load_plan *p = &o->plan;
    switch (option) {
    case OPT_SERVER:
        return (net_parse_endpoint(value, &p->server) && p->server.port != 0) ||
               fail(error, "--server takes ADDR:PORT with an IP address, not '%s'.", value);
    case OPT_PATH:
        return take_path(p, value, error);
    case OPT_CONNECTIONS:
        return take_number(option, value, 1, 1000000, 1, &o->connections, error);
    case OPT_CONCURRENT:
        return take_number(option, value, 1, 1000000, 1, &o->concurrent, error);
    case OPT_INTERVAL:
        return take_number(option, value, 0, 60000000, 1, &o->interval_us, error);
    case OPT_REQUESTS:
        return take_number(option, value, 0, 1000000, 1, &p->requests, error);
    case OPT_PAUSE:
        return take_number(option, value, 0, 3600000, 1000, &p->pause_us, error);
    case OPT_SEED:
        p->seed.given = true;
        return take_number(option, value, 0, INT64_MAX, 1, &p->seed.seed, error);
    case OPT_PING:
        return take_number(option, value, 0, 3600000, 1000, &p->ping_us, error);
    case OPT_TIME_LIMIT:
        return take_number(option, value, 1, 86400, 1000000, &o->time_limit_us, error);
    case OPT_SCHEME:
        return take_scheme(p, value, error);
    case OPT_INSECURE:
        o->insecure = true;
        return true;
    case OPT_HELP:
        o->help = true;
        return true;
    default:
        *(option == OPT_URL ? &p->url : option == OPT_CA ? &o->ca_file : &o->out_file) = value;
        return true;
    }
}

/* The server goes by its address, in requests and in its certificate. */
static void name_server(load_plan *p) {
    xl_addr_format(&p->server, p->authority, sizeof p->authority);
    inet_ntop(p->server.family == 6 ? AF_INET6 : AF_INET, p->server.ip, p->host, sizeof p->host);
}

bool load_options_parse(int argc, char **argv, load_options *o, char *error) {
    *o = (load_options){.plan = {.scheme = "vanilla-mp", .url = "/synthetic/100000", .requests = 1},
                        .connections = 100,
                        .time_limit_us = 60000000};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == ':' || option == '?') {
            return fail(error, "%s '%s'; see --help.", option == ':' ? "no value for" : "unknown option",
                        argv[optind - 1]);
        }
        if (!take_option(o, option, optarg, error)) {
            return false;
        }
    }
    if (optind < argc) {
        return fail(error, "unexpected argument '%s'; see --help.", argv[optind]);
    }
    if (!o->help && (o->plan.server.family == 0 || o->plan.paths == 0)) {
        return fail(error, "--server ADDR:PORT and at least one --path ADDR are needed; see --help.");
    }
    if (!o->help && !o->insecure && o->ca_file == NULL) {
        return fail(error, "--ca FILE is needed to verify the server's certificate, or --insecure.");
    }
    name_server(&o->plan);
    o->concurrent = o->concurrent == 0 ? o->connections : o->concurrent;
    return true;
}
