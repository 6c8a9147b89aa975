/* xlink-server: serves byte ranges of videos by HTTP/3 and HTTP/1.1. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "server/options.h"
#include "server/process.h"
#include "server/report.h"
#include "server/workers.h"

static bool open_log(server *s) {
    const char *file = s->config.out_file;
    if (!file)
        return true;
    s->log = s->config.workers > 0 ? jsonl_open_shared(file, s->start_us, -1) : jsonl_open(file, s->start_us);
    if (!s->log)
        return error_say(SERVER_PROGRAM, "cannot write %s: %s.", file, strerror(errno));
    jsonl_limit(s->log, s->config.out_bytes);
    jsonl_write_start(s->log, s->config.argc, s->config.argv, server_describe(&s->config));
    return true;
}

static int serve_alone(server *s, server_totals *totals) {
    json_t *listening = json_object();
    bool started = server_start(s, listening);
    if (started) {
        jsonl_announce(s->log, json_incref(listening), clock_us());
        server_run(s);
    }
    json_decref(listening);
    server_stop(s, totals);
    return started ? 0 : 2;
}

static int serve(server *s) {
    server_catch_signals(&s->unblocked);
    descriptors_raise_limit(); /* HTTP/1.1: one for each connection */
    s->start_us = clock_us();
    if (!server_open(s) || !open_log(s))
        return 2;
    random_key_warn(&s->config.seed, SERVER_PROGRAM, s->log, s->start_us);
    server_totals totals = {.paths = json_array()};
    json_t *by_worker = s->config.workers > 0 ? json_array() : NULL;
    int status = by_worker ? workers_run(s, &totals, by_worker) : serve_alone(s, &totals);
    json_t *summary = server_summary_fields(&totals);
    if (by_worker)
        json_object_set_new(summary, "workers", by_worker);
    if (status == 2)
        json_decref(summary);
    else {
        jsonl_limit(s->log, 0);
        jsonl_write(s->log, "summary", summary, clock_us());
    }
    json_decref(totals.paths);
    return status;
}

int main(int argc, char **argv) {
    static server s = {.epoll = -1, .files = {.root = -1}};
    char error[SETTINGS_ERROR_BYTES];
    if (!server_options_parse(argc, argv, &s.base, error))
        return error_status(SERVER_PROGRAM, "%s", error);
    if (s.base.help) {
        server_options_print_usage();
        return 0;
    }
    if (s.base.describe_settings)
        return jsonl_print(quic_settings_describe(), JSON_INDENT(1));
    int status = serve(&s);
    status = jsonl_end(s.log, SERVER_PROGRAM, s.config.out_file, status);
    server_close(&s);
    return status;
}
