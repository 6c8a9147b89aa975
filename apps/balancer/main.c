/* xlink-balancer: forwards QUIC datagrams to the server that the connection ID names. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "balancer/forwarder.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/jsonl.h"
#include "base/net.h"
#include "base/numbers.h"
#include "base/wait.h"
#include "xlink/udp.h"

#define PROGRAM "xlink-balancer"

typedef struct {
    forwarder_options forward;
    const char *config_file, *out_file;
    jsonl *log;
    uint8_t own_secret[XL_STATIC_SECRET_BYTES]; /* used if the configuration has no secret */
    size_t server_id_bytes;
    int spare; /* reserved descriptor, to read the configuration even if flows use all others */
    bool help;
} options;

static volatile sig_atomic_t end_wanted, reload_wanted;

static void on_signal(int signal) {
    *(signal == SIGHUP ? &reload_wanted : &end_wanted) = 1;
}

#define fail(error, ...) error_set(error, LB_ERROR_BYTES, __VA_ARGS__)

#define FIELD(member) SETTING_FIELD(options, member)

static const setting rows[] = {
    {"listen", SETTING_OWN, FIELD(forward.listen), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Address for clients. Port 0: the kernel chooses."},
    {"lb_config", SETTING_TEXT, FIELD(config_file), .value = "FILE",
     .help = "YAML file with the configuration of connection IDs and the servers. Read again at SIGHUP."},
    {"max_flows", SETTING_WHOLE, FIELD(forward.max_flows), .least = 1, .most = 1000000, .value = "N",
     .fallback = "4096", .help = "Maximum number of client addresses. Each has a socket."},
    {"idle_timeout", SETTING_WHOLE, FIELD(forward.idle_timeout_us), .least = 1, .most = 86400, .scale = 1000000,
     .value = "S", .fallback = "120", .help = "Remove a client address that was silent for this long."},
    {"probe_interval_ms", SETTING_WHOLE, FIELD(forward.probe_interval_us), .most = 60000, .scale = 1000, .value = "MS",
     .fallback = "1000",
     .help = "Interval at which each server is asked whether it is there. New clients do not go to one that is silent "
             "for three of them. 0: servers are not asked."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE.jsonl", .help = "Write events and a summary as JSON Lines."},
    {0},
};

static bool parse(int argc, char **argv, options *o, char *error) {
    *o = (options){.spare = -1,
                   .forward = {.max_flows = 4096, .idle_timeout_us = 120000000, .probe_interval_us = 1000000}};
    const setting_tables s = {.table = {{rows, o, 0}}, .count = 1};
    if (!settings_read_args(&s, argc, argv, &o->help, NULL, error) || o->help)
        return o->help;
    return (o->forward.listen.family != 0 && o->config_file) ||
           fail(error, "--listen ADDR:PORT and --lb-config FILE are needed; see --help.");
}

static void print_usage(void) {
    printf("usage: xlink-balancer --listen ADDR:PORT --lb-config FILE [options]\n");
    settings_help(stdout, rows, 0);
}

static bool read_config(const options *o, lb_file *file, char *error) {
    if (!lb_file_read(o->config_file, file, error))
        return false;
    if (!file->has_secret)
        memcpy(file->secret, o->own_secret, sizeof file->secret);
    return file->server_count > 0 || fail(error, "%s: there is no server under servers.", o->config_file);
}

static void reload(forwarder *w, options *o, jsonl *log) {
    char error[LB_ERROR_BYTES] = "out of memory.";
    lb_file *file = malloc(sizeof *file);
    reload_wanted = 0;
    descriptor_close(&o->spare);
    bool ok = file && read_config(o, file, error);
    o->spare = descriptors_reserve();
    if (ok && forwarder_update(w, file, xl_udp_now())) {
        o->server_id_bytes = file->server_id_bytes;
        jsonl_write(log, "reloaded", json_pack("{s:I}", "servers", (json_int_t)file->server_count), xl_udp_now());
    } else {
        error_say(PROGRAM, "%s", error);
        json_t *text = json_string(error);
        jsonl_write(log, "reload_failed", json_pack("{s:o}", "message", text ? text : json_null()), xl_udp_now());
    }
    jsonl_flush(log); /* the sender of the signal may wait for it */
    free(file);
}

static void on_changed(void *user, const lb_server *server, bool is_up, uint64_t now) {
    const options *o = user;
    char id[2 * XL_LB_SERVER_ID_MAX + 1], text[64];
    hex_write(server->id, o->server_id_bytes, id);
    xl_addr_format(&server->address, text, sizeof text);
    error_say(PROGRAM, "server %s at %s is %s.", id, text, is_up ? "there again" : "down");
    jsonl_write(o->log, is_up ? "server_up" : "server_down", json_pack("{s:s, s:s}", "server", id, "address", text),
                now);
    jsonl_flush(o->log);
}

static json_t *describe_servers(const forwarder *w, const forwarder_stats *stats) {
    const lb_file *file = forwarder_file(w);
    json_t *servers = json_array();
    for (size_t i = 0; i < file->server_count; i++) {
        char id[2 * XL_LB_SERVER_ID_MAX + 1], text[64];
        hex_write(file->server[i].id, file->server_id_bytes, id);
        json_array_append_new(servers,
                              json_pack("{s:s, s:s, s:b, s:I, s:I}", "id", id, "address",
                                        xl_addr_format(&file->server[i].address, text, sizeof text), "drain",
                                        (int)file->server[i].drain, "datagrams_to", (json_int_t)stats->to_server[i],
                                        "datagrams_from", (json_int_t)stats->from_server[i]));
    }
    return servers;
}

static void summarise(const forwarder *w, jsonl *log) {
    forwarder_stats stats;
    flows_stats flow_stats;
    forwarder_get_stats(w, &stats, &flow_stats);
    json_t *fields =
        json_pack("{s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I}}", "unsent", (json_int_t)stats.unsent, "no_flow",
                  (json_int_t)stats.no_flow, "servers", describe_servers(w, &stats), "flows", "now",
                  (json_int_t)flow_stats.now, "opened", (json_int_t)flow_stats.opened, "established",
                  (json_int_t)flow_stats.established, "expired", (json_int_t)flow_stats.expired, "evicted",
                  (json_int_t)flow_stats.evicted, "refused", (json_int_t)flow_stats.refused);
    for (int i = 0; i < ROUTE_KINDS; i++)
        json_object_set_new(fields, route_kind_name((route_kind)i), json_integer((json_int_t)stats.kinds[i]));
    jsonl_write(log, "summary", fields, xl_udp_now());
}

static void run(forwarder *w, options *o, jsonl *log, const sigset_t *unblocked) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, forwarder_fd(w), &e) != 0)
        return;
    while (!end_wanted) {
        (void)wait_events(epoll, &e, 1, forwarder_tick(w, xl_udp_now()), unblocked);
        if (reload_wanted)
            reload(w, o, log);
        forwarder_step(w, xl_udp_now());
    }
    close(epoll);
}

/* Draws own_secret, once: rereading the configuration must not move clients that are routed by hash. */
static bool draw_secret(options *o, char *error) {
    return getrandom(o->own_secret, sizeof o->own_secret, 0) == (ssize_t)sizeof o->own_secret ||
           fail(error, "the system gives no random bytes: %s.", strerror(errno));
}

static forwarder *start(options *o, xl_addr *bound, char *error) {
    descriptors_raise_limit(); /* one per flow */
    lb_file *file = malloc(sizeof *file);
    if (!file || !draw_secret(o, error) || !read_config(o, file, error)) {
        free(file);
        return NULL;
    }
    o->forward.changed = on_changed;
    o->forward.user = o;
    o->server_id_bytes = file->server_id_bytes;
    o->spare = descriptors_reserve();
    forwarder *w = forwarder_new(&o->forward, file, bound, xl_udp_now(), error);
    if (!w)
        strncat(error, ".", LB_ERROR_BYTES - strlen(error) - 1);
    free(file);
    return w;
}

static jsonl *open_log(const options *o, int argc, char **argv, char *error) {
    uint64_t now = xl_udp_now();
    jsonl *log = jsonl_open(o->out_file, now);
    if (!log)
        fail(error, "cannot write %s: %s.", o->out_file, strerror(errno));
    jsonl_write_start(log, argc, argv, json_object());
    return log;
}

int main(int argc, char **argv) {
    options o;
    char error[LB_ERROR_BYTES] = "out of memory.";
    sigset_t unblocked;
    xl_addr bound;
    char text[64];
    jsonl *log = NULL;
    wait_catch_signals((const int[]){SIGTERM, SIGINT, SIGHUP, 0}, on_signal, &unblocked);
    bool ok = parse(argc, argv, &o, error);
    if (ok && o.help) {
        print_usage();
        return 0;
    }
    ok = ok && (!o.out_file || (log = o.log = open_log(&o, argc, argv, error)));
    forwarder *w = ok ? start(&o, &bound, error) : NULL;
    if (!w) {
        error_say(PROGRAM, "%s", error);
        jsonl_close(log);
        return 2;
    }
    jsonl_announce(log, json_pack("{s:s}", "quic", xl_addr_format(&bound, text, sizeof text)), xl_udp_now());
    run(w, &o, log, &unblocked);
    summarise(w, log);
    forwarder_free(w);
    return jsonl_end(log, PROGRAM, o.out_file, 0);
}
