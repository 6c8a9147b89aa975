/* xlink-server: serves byte ranges of videos by HTTP/3 and HTTP/1.1. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "http/jsonl.h"
#include "server/files.h"
#include "server/options.h"
#include "server/report.h"
#include "server/server.h"

#define PROGRAM         "xlink-server"
#define MAX_EVENTS      128
#define MAX_INDEX_BYTES ((size_t)64 << 20)

/* All services, in the order of the listening line. */
static const server_service_ops *const services[] = {&server_quic_service, &server_http1_service};
#define SERVICES (sizeof services / sizeof services[0])

struct server {
    server_config config;
    catalogue *catalogue;
    server_files files;
    catalogue_files file_table;
    jsonl *log;
    uint64_t start_us, connections;
    int epoll;
    struct epoll_event ready[MAX_EVENTS]; /* of this round; an entry whose watch was removed is cleared */
    int ready_count;
    server_service *running[SERVICES];
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal) {
    (void)signal;
    interrupted = 1;
}

static uint64_t clock_us(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

const server_config *server_get_config(const server *s) {
    return &s->config;
}

catalogue *server_get_catalogue(server *s) {
    return s->catalogue;
}

void server_log(server *s, const char *event, json_t *fields, uint64_t now) {
    jsonl_write(s->log, event, fields, now);
}

uint64_t server_next_connection(server *s) {
    return s->connections++;
}

bool server_watch_add(server *s, server_watch *watch, uint32_t events) {
    struct epoll_event e = {.events = events, .data = {.ptr = watch}};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, watch->fd, &e) == 0;
}

bool server_watch_modify(server *s, server_watch *watch, uint32_t events) {
    struct epoll_event e = {.events = events, .data = {.ptr = watch}};
    return epoll_ctl(s->epoll, EPOLL_CTL_MOD, watch->fd, &e) == 0;
}

void server_watch_remove(server *s, server_watch *watch) {
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = 0; i < s->ready_count; i++) {
        if (s->ready[i].data.ptr == watch) {
            s->ready[i].data.ptr = NULL;
        }
    }
}

/* The whole of a file, NUL terminated; NULL with errno set. */
static char *read_file(const char *name, size_t limit, size_t *len) {
    FILE *f = fopen(name, "re");
    if (f == NULL) {
        return NULL;
    }
    char *text = NULL;
    size_t cap = 0;
    *len = 0;
    for (;;) {
        if (*len + 1 >= cap) {
            cap = cap == 0 ? 65536 : cap * 2;
            char *grown = cap <= limit * 2 ? realloc(text, cap) : NULL;
            if (grown == NULL) {
                free(text);
                fclose(f);
                errno = EFBIG;
                return NULL;
            }
            text = grown;
        }
        size_t n = fread(text + *len, 1, cap - 1 - *len, f);
        if (n == 0) {
            break;
        }
        *len += n;
    }
    int error = ferror(f) ? EIO : 0;
    fclose(f);
    if (error != 0) {
        free(text);
        errno = error;
        return NULL;
    }
    text[*len] = '\0';
    return text;
}

static bool load_frame_index(server *s) {
    const char *file = s->config.frame_index_file;
    char error[256];
    size_t len = 0;
    char *text = read_file(file, MAX_INDEX_BYTES, &len);
    if (text == NULL) {
        fprintf(stderr, PROGRAM ": cannot read the frame index %s: %s.\n", file, strerror(errno));
        return false;
    }
    bool ok = catalogue_load_frame_index(s->catalogue, text, len, error, sizeof error);
    free(text);
    if (!ok) {
        fprintf(stderr, PROGRAM ": the frame index %s is wrong: %s.\n", file, error);
    }
    return ok;
}

static bool open_catalogue(server *s) {
    if (s->config.root != NULL) {
        if (!server_files_open(&s->files, s->config.root)) {
            fprintf(stderr, PROGRAM ": cannot serve --root %s: %s.\n", s->config.root, strerror(errno));
            return false;
        }
        s->file_table = server_files_table(&s->files);
    }
    s->catalogue = catalogue_new(&s->config.video, s->config.root != NULL ? &s->file_table : NULL);
    if (s->catalogue == NULL) {
        fprintf(stderr, PROGRAM ": out of memory.\n");
        return false;
    }
    return s->config.frame_index_file == NULL || load_frame_index(s);
}

/* Opens all sockets, then prints the line that says so. */
static bool start_services(server *s) {
    json_t *line = json_pack("{s:s}", "event", "listening");
    for (size_t i = 0; i < SERVICES; i++) {
        char error[SERVER_ERROR_BYTES] = "unknown reason", text[64];
        xl_addr bound = {0};
        if (!services[i]->wanted(&s->config)) {
            continue;
        }
        s->running[i] = services[i]->start(s, clock_us(), &bound, error);
        if (s->running[i] == NULL) {
            fprintf(stderr, PROGRAM ": %s.\n", error);
            json_decref(line);
            return false;
        }
        json_object_set_new(line, services[i]->name, json_string(xl_addr_format(&bound, text, sizeof text)));
    }
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_object_del(line, "event");
    jsonl_write(s->log, "listening", line, clock_us());
    return true;
}

static void wait_for_events(server *s, const sigset_t *unblocked) {
    uint64_t next = XL_NEVER;
    for (size_t i = 0; i < SERVICES; i++) {
        uint64_t t = s->running[i] != NULL ? services[i]->next_timeout(s->running[i]) : XL_NEVER;
        next = t < next ? t : next;
    }
    uint64_t now = clock_us(), left = next > now ? next - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000), .tv_nsec = (long)(left % 1000000) * 1000};
    int n = epoll_pwait2(s->epoll, s->ready, MAX_EVENTS, next == XL_NEVER ? NULL : &timeout, unblocked);
    s->ready_count = n > 0 ? n : 0;
}

static void run(server *s, const sigset_t *unblocked) {
    while (!interrupted) {
        wait_for_events(s, unblocked);
        uint64_t now = clock_us();
        for (int i = 0; i < s->ready_count; i++) {
            server_watch *watch = s->ready[i].data.ptr;
            if (watch != NULL) {
                watch->ready(watch, s->ready[i].events, now);
            }
        }
        s->ready_count = 0;
        for (size_t i = 0; i < SERVICES; i++) {
            if (s->running[i] != NULL) {
                services[i]->step(s->running[i], now);
            }
        }
    }
}

static void stop_services(server *s) {
    server_totals totals = {.paths = json_array()};
    bool any = false;
    for (size_t i = 0; i < SERVICES; i++) {
        if (s->running[i] != NULL) {
            services[i]->stop(s->running[i], clock_us());
            services[i]->add_totals(s->running[i], &totals);
            services[i]->free(s->running[i]);
            any = true;
        }
    }
    if (any) {
        jsonl_write(s->log, "summary", server_summary_fields(&totals), clock_us());
    }
    json_decref(totals.paths);
}

/* Signals arrive only while waiting. */
static void set_up_signals(sigset_t *unblocked) {
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, unblocked);
    sigdelset(unblocked, SIGTERM);
    sigdelset(unblocked, SIGINT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static bool open_log(server *s, int argc, char **argv) {
    if (s->config.out_file == NULL) {
        return true;
    }
    s->log = jsonl_open(s->config.out_file, s->start_us);
    if (s->log == NULL) {
        fprintf(stderr, PROGRAM ": cannot write %s: %s.\n", s->config.out_file, strerror(errno));
        return false;
    }
    jsonl_write_start(s->log, argc, argv, server_describe(&s->config));
    return true;
}

static int serve(server *s, int argc, char **argv) {
    sigset_t unblocked;
    set_up_signals(&unblocked);
    s->start_us = clock_us();
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0) {
        fprintf(stderr, PROGRAM ": no epoll: %s.\n", strerror(errno));
        return 2;
    }
    if (!open_catalogue(s) || !open_log(s, argc, argv)) {
        return 2;
    }
    bool started = start_services(s);
    if (started) {
        run(s, &unblocked);
    }
    stop_services(s);
    return started ? 0 : 2;
}

int main(int argc, char **argv) {
    static server s = {.epoll = -1, .files = {.root = -1}};
    char error[512];
    bool help = false;
    if (!server_options_parse(argc, argv, &s.config, &help, error, sizeof error)) {
        fprintf(stderr, PROGRAM ": %s\n", error);
        return 2;
    }
    if (help) {
        fputs(server_options_usage(), stdout);
        return 0;
    }
    int status = serve(&s, argc, argv);
    if (!jsonl_close(s.log)) {
        fprintf(stderr, PROGRAM ": cannot write %s to its end: %s.\n", s.config.out_file, strerror(errno));
        status = status != 0 ? status : 1;
    }
    catalogue_free(s.catalogue);
    server_files_close(&s.files);
    if (s.epoll >= 0) {
        close(s.epoll);
    }
    return status;
}
