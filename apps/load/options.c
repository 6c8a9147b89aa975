#include "load/options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"
#include "base/net.h"

/* ---- Settings with a form of their own ---- */

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    load_plan *p = &((load_options *)into)->plan;
    char address[64];
    const size_t len = strcspn(text, "/");
    uint64_t prefix = 128;
    if (p->paths == XL_MAX_PATHS)
        return error_set(reason, cap, "may be given %d times", XL_MAX_PATHS);
    snprintf(address, sizeof address, "%.*s", (int)(len < sizeof address ? len : 0), text);
    xl_addr *a = &p->path[p->paths];
    bool ok = net_parse_ip(address, a);
    if (ok && text[len] == '/')
        ok = a->family == 4 && number_parse(text + len + 1, strlen(text + len + 1), &prefix) && prefix <= 32;
    if (ok)
        p->prefix[p->paths++] = (unsigned)prefix;
    else
        snprintf(reason, cap, "takes an IP address, an IPv4 one perhaps with a prefix length, not '%.60s'", text);
    return ok;
}

/* ---- The table ---- */

#define FIELD(member) SETTING_FIELD(load_options, member)

static const setting rows[] = {
    {"server", SETTING_OWN, FIELD(plan.server), .read = net_read_server, .value = "ADDR:PORT",
     .help = "Address of the server or balancer."},
    {"path", SETTING_OWN, .read = read_path, .value = "ADDR[/PREFIX]",
     .help = "Source address of a path. With a prefix, client i uses ADDR + i. Give it once for each path."},
    {"connections", SETTING_WHOLE, FIELD(connections), .least = 1, .most = 1000000, .value = "N", .fallback = "100",
     .help = "Total number of connections."},
    {"concurrent", SETTING_WHOLE, FIELD(concurrent), .least = 1, .most = 1000000, .value = "N", .fallback = "all",
     .help = "Number of connections open at the same time."},
    {"interval_us", SETTING_WHOLE, FIELD(interval_us), .most = 60000000, .value = "US", .fallback = "0",
     .help = "Time between the starts of two connections."},
    {"url", SETTING_TEXT, FIELD(plan.url), .value = "PATH", .fallback = "/synthetic/100000",
     .help = "Path that each request asks for."},
    {"requests", SETTING_WHOLE, FIELD(plan.requests), .most = 1000000, .value = "N", .fallback = "1",
     .help = "Number of requests of each connection. 0: until SIGTERM, after which each connection completes its "
             "current request."},
    {"pause_ms", SETTING_WHOLE, FIELD(plan.pause_us), .most = 3600000, .scale = 1000, .value = "MS", .fallback = "0",
     .help = "Time between two requests."},
    {"ca", SETTING_TEXT, FIELD(ca_file), .value = "FILE",
     .help = "Verify the server's certificate, which must name ADDR, against the CA certificates in FILE (PEM)."},
    {"insecure", SETTING_FLAG, FIELD(insecure), .help = "Do not verify the server's certificate."},
    {"seed", SETTING_OWN, FIELD(plan.seed), .read = random_seed_read, .value = "N",
     .help = "Derive all random choices, keys and secrets from N, so that runs can be repeated. Not for deployment."},
    {"ping_ms", SETTING_WHOLE, FIELD(plan.ping_us), .most = 3600000, .scale = 1000, .value = "MS", .fallback = "0",
     .help = "Interval of PINGs on each path of each connection. 0: no PINGs."},
    {"time_limit", SETTING_WHOLE, FIELD(time_limit_us), .least = 1, .most = 86400, .scale = 1000000, .value = "S",
     .fallback = "60", .help = "End after this time, even if requests are open."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE.jsonl",
     .help = "Write a record for each connection and a summary as JSON Lines."},
    {0},
};

void load_options_print_usage(void) {
    printf("usage: xlink-load --server ADDR:PORT --path ADDR[/PREFIX] [--path ...] [options]\n");
    settings_help(stdout, rows, 0);
    settings_help(stdout, quic_setting_rows, SETTING_OF_PLAYER);
}

static const char *problem(const load_options *o) {
    if (o->plan.server.family == 0 || o->plan.paths == 0)
        return "--server ADDR:PORT and at least one --path ADDR are needed; see --help";
    if (!o->insecure && !o->ca_file)
        return "--ca FILE is needed to verify the server's certificate, or --insecure";
    return quic_settings_problem(&o->plan.settings, false);
}

/* Names the server by its address, in requests and for its certificate. */
static void name_server(load_plan *p) {
    xl_addr_format(&p->server, p->authority, sizeof p->authority);
    inet_ntop(p->server.family == 6 ? AF_INET6 : AF_INET, p->server.ip, p->host, sizeof p->host);
}

bool load_options_parse(int argc, char **argv, load_options *o, char *error) {
    *o = (load_options){
        .plan = {.url = "/synthetic/100000", .requests = 1}, .connections = 100, .time_limit_us = 60000000};
    quic_settings_init(&o->plan.settings);
    quic_settings_choose(&o->plan.settings, "vanilla-mp");
    const setting_tables s = {.table = {{rows, o, 0}, {quic_setting_rows, &o->plan.settings, SETTING_OF_PLAYER}},
                              .count = 2};
    if (!settings_read_args(&s, argc, argv, &o->help, NULL, error) || o->help)
        return o->help;
    const char *what = problem(o);
    name_server(&o->plan);
    o->concurrent = o->concurrent == 0 ? o->connections : o->concurrent;
    return !what || error_set(error, SETTINGS_ERROR_BYTES, "%s.", what);
}
