#include "server/process.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/text_file.h"
#include "base/wait.h"
#include "server/deployment.h"
#include "server/ffprobe.h"
#include "server/options.h"
#include "server/report.h"

#define MAX_INDEX_BYTES ((size_t)64 << 20)

/* All services, in the order of the listening line. */
static const server_service_ops *const services[SERVER_SERVICES] = {&server_quic_service, &server_http1_service};

server_signals server_signalled;

static void on_signal(int signal) {
    if (signal == SIGHUP)
        server_signalled.reload = 1;
    else if (signal == SIGCHLD)
        server_signalled.child = 1;
    else
        server_signalled.end = 1;
}

void server_catch_signals(sigset_t *unblocked) {
    static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, 0};
    wait_catch_signals(caught, on_signal, unblocked);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- What services ask ---- */

uint64_t server_next_connection(server *s) {
    return atomic_fetch_add((_Atomic uint64_t *)s->connections, 1);
}

bool server_watch_add(server *s, server_watch *watch) {
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = watch}};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, watch->fd, &e) == 0;
}

bool server_watch_modify(server *s, server_watch *watch, uint32_t events) {
    struct epoll_event e = {.events = events, .data = {.ptr = watch}};
    return epoll_ctl(s->epoll, EPOLL_CTL_MOD, watch->fd, &e) == 0;
}

void server_watch_remove(server *s, server_watch *watch) {
    struct epoll_event *ready = s->ready;
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = 0; i < s->ready_count; i++)
        if (ready[i].data.ptr == watch)
            ready[i].data.ptr = NULL;
}

/* ---- Opening ---- */

static bool load_frame_index(server *s) {
    const char *file = s->config.frame_index_file;
    char error[256];
    size_t len = 0;
    char *text = file_read_at(file, MAX_INDEX_BYTES, &len);
    if (!text)
        return error_say(SERVER_PROGRAM, "cannot read the frame index %s: %s.", file, strerror(errno));
    bool ok = catalogue_load_frame_index(s->catalogue, text, len, error, sizeof error);
    free(text);
    return ok || error_say(SERVER_PROGRAM, "the frame index %s is wrong: %s.", file, error);
}

/* spec: "/VIDEO=FILE" */
static bool load_ffprobe(server *s, const char *spec) {
    const char *file = strchr(spec, '=') + 1;
    char error[256], *target = strndup(spec, (size_t)(file - 1 - spec));
    uint64_t end = 0;
    size_t len = 0;
    char *text = file_read_at(file, MAX_INDEX_BYTES, &len);
    if (!text) {
        error_say(SERVER_PROGRAM, "cannot read ffprobe's output %s: %s.", file, strerror(errno));
        free(target);
        return false;
    }
    bool ok = ffprobe_first_frame(text, len, &end, error, sizeof error)
                  ? (target && catalogue_set_first_frame(s->catalogue, target, end)) ||
                        error_say(SERVER_PROGRAM, "out of memory.")
                  : error_say(SERVER_PROGRAM, "ffprobe's output %s has no first frame: %s.", file, error);
    free(text);
    free(target);
    return ok;
}

static bool load_frames(server *s) {
    if (s->config.frame_index_file && !load_frame_index(s))
        return false;
    for (size_t i = 0; i < s->config.ffprobe_count; i++)
        if (!load_ffprobe(s, s->config.ffprobe[i]))
            return false;
    return true;
}

static bool open_catalogue(server *s) {
    if (s->config.root) {
        if (!server_files_open(&s->files, s->config.root))
            return error_say(SERVER_PROGRAM, "cannot serve --root %s: %s.", s->config.root, strerror(errno));
        s->file_table = server_files_table(&s->files);
    }
    s->catalogue = catalogue_new(&s->config.video, s->config.root ? &s->file_table : NULL);
    if (!s->catalogue)
        return error_say(SERVER_PROGRAM, "out of memory.");
    return load_frames(s);
}

static bool open_deployment(server *s) {
    char error[SERVER_ERROR_BYTES];
    if (s->config.workers == 0 && !s->config.lb_file)
        return true;
    return server_deployment_open(&s->config, &s->lb, &s->deployment, error, sizeof error) ||
           error_say(SERVER_PROGRAM, "%s", error);
}

bool server_reload(server *s) {
    char error[SETTINGS_ERROR_BYTES] = "there is no --params FILE to read again.";
    uint64_t now = clock_us();
    if (!s->base.params_file || !server_options_load_params(&s->base, &s->config, error)) {
        error_say(SERVER_PROGRAM, "%s", error);
        jsonl_write(s->log, "reload_failed", json_pack("{s:s%}", "message", error, strlen(error)), now);
        return false;
    }
    jsonl_write(s->log, "reloaded", server_describe(&s->config), now);
    for (size_t i = 0; i < SERVER_SERVICES; i++)
        if (s->running[i] && services[i]->reconfigure)
            services[i]->reconfigure(s->running[i], now);
    return true;
}

bool server_open(server *s) {
    char error[SERVER_ERROR_BYTES];
    if (!random_key_make(&s->base.seed, "server", s->base.random_key, error, sizeof error))
        return error_say(SERVER_PROGRAM, "%s.", error);
    s->base.random_packet_numbers = !s->base.seed.given;
    s->config = s->base;
    s->connections = mmap(NULL, sizeof *s->connections, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->connections == MAP_FAILED) {
        s->connections = NULL;
        error_say(SERVER_PROGRAM, "out of memory.");
        return false;
    }
    return open_catalogue(s) && open_deployment(s) && (!s->base.params_file || server_reload(s));
}

void server_close(server *s) {
    catalogue_free(s->catalogue);
    server_files_close(&s->files);
    xl_lb_free(s->lb);
    if (s->connections)
        munmap(s->connections, sizeof *s->connections);
    descriptor_close(&s->epoll);
    free(s->ready);
}

/* ---- Serving ---- */

static bool open_loop(server *s) {
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->ready = calloc(SERVER_MAX_EVENTS, sizeof(struct epoll_event));
    if (s->epoll < 0 || !s->ready)
        return error_say(SERVER_PROGRAM, "no epoll: %s.", strerror(errno));
    return true;
}

bool server_start(server *s, json_t *listening) {
    if (!open_loop(s))
        return false;
    for (size_t i = 0; i < SERVER_SERVICES; i++) {
        char error[SERVER_ERROR_BYTES] = "unknown reason", text[64];
        xl_addr bound = {0};
        if (!services[i]->wanted(&s->config))
            continue;
        s->running[i] = services[i]->start(s, clock_us(), &bound, error);
        if (!s->running[i])
            return error_say(SERVER_PROGRAM, "%s.", error);
        json_object_set_new(listening, services[i]->name, json_string(xl_addr_format(&bound, text, sizeof text)));
    }
    return true;
}

static void wait_for_events(server *s) {
    uint64_t next = XL_NEVER;
    for (size_t i = 0; i < SERVER_SERVICES; i++) {
        uint64_t t = s->running[i] ? services[i]->next_timeout(s->running[i]) : XL_NEVER;
        next = t < next ? t : next;
    }
    int n = wait_events(s->epoll, s->ready, SERVER_MAX_EVENTS, next, &s->unblocked);
    s->ready_count = n > 0 ? n : 0;
}

void server_run(server *s) {
    struct epoll_event *ready = s->ready;
    while (!server_signalled.end) {
        wait_for_events(s);
        if (server_signalled.reload) {
            server_signalled.reload = 0;
            (void)server_reload(s);
        }
        uint64_t now = clock_us();
        for (int i = 0; i < s->ready_count; i++) {
            server_watch *watch = ready[i].data.ptr;
            if (watch)
                watch->ready(watch, ready[i].events, now);
        }
        s->ready_count = 0;
        for (size_t i = 0; i < SERVER_SERVICES; i++)
            if (s->running[i])
                services[i]->step(s->running[i], now);
    }
}

void server_stop(server *s, server_totals *totals) {
    for (size_t i = 0; i < SERVER_SERVICES; i++) {
        if (s->running[i]) {
            services[i]->stop(s->running[i], clock_us());
            services[i]->add_totals(s->running[i], totals);
            services[i]->free(s->running[i]);
            s->running[i] = NULL;
        }
    }
}
