/* xlink-player: plays one video over one transport and writes what happened as JSON Lines. Driver of player/player.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "http/jsonl.h"
#include "player/options.h"
#include "player/player.h"
#include "player/report.h"
#include "player/transport.h"

#define PROGRAM    "xlink-player"
#define MAX_EVENTS 64

typedef struct {
    player_options options;
    player *player;
    const player_transport_ops *ops;
    player_transport *transport; /* NULL: could not be created */
    jsonl *log;
    uint64_t start_us;
    int epoll, save_fd;
} driver;

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

static void on_player_event(void *user, const player_event *event) {
    driver *d = user;
    jsonl_write(d->log, player_event_name(event->type), player_event_fields(event, d->start_us), event->at);
}

static void on_watch(void *user, int fd, uint32_t events) {
    driver *d = user;
    struct epoll_event e = {.events = events, .data = {.fd = fd}};
    if (events == 0) {
        epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
    } else if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, fd, &e) != 0 && epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        /* Without a watch, the step after the next timeout finds what there is to do. */
        fprintf(stderr, PROGRAM ": cannot wait for a socket: %s.\n", strerror(errno));
    }
}

static void on_connected(void *user, uint64_t now) {
    player_connected(((driver *)user)->player, now);
}

static bool save(driver *d, uint64_t at, const uint8_t *data, size_t len) {
    while (len > 0) {
        ssize_t n = pwrite(d->save_fd, data, len, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        data += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

static void on_data(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    driver *d = user;
    player_data(d->player, id, offset, data, len, now);
    if (d->save_fd >= 0 && !player_over(d->player) &&
        !save(d, id * d->options.player.chunk_bytes + offset, data, len)) {
        char message[PLAYER_MESSAGE_BYTES];
        snprintf(message, sizeof message, "cannot write the --save file: %s", strerror(errno));
        player_fail(d->player, PLAYER_ERROR, message, now);
    }
}

static void on_done(void *user, uint64_t id, uint64_t now) {
    player_done(((driver *)user)->player, id, now);
}

static void on_failed(void *user, uint64_t id, const char *message, uint64_t now) {
    char text[PLAYER_MESSAGE_BYTES];
    snprintf(text, sizeof text, "request for chunk %" PRIu64 " failed: %s", id, message);
    player_fail(((driver *)user)->player, PLAYER_ERROR, text, now);
}

static const char *path_name(const driver *d, size_t path) {
    return path < d->options.transport_config.path_count ? d->options.paths[path].name : "?";
}

static void on_path(void *user, size_t path, const char *state, uint64_t now) {
    driver *d = user;
    player_step(d->player, now); /* its events up to now come first */
    jsonl_write(d->log, "path", json_pack("{s:s, s:s}", "name", path_name(d, path), "state", state), now);
}

static void on_migrated(void *user, size_t from, size_t to, uint64_t now) {
    driver *d = user;
    player_step(d->player, now);
    jsonl_write(d->log, "migrate", json_pack("{s:s, s:s}", "from", path_name(d, from), "to", path_name(d, to)), now);
}

static void on_closed(void *user, const char *message, uint64_t now) {
    driver *d = user;
    player_summary s;
    player_summarise(d->player, &s);
    player_fail(d->player, s.connected ? PLAYER_CONNECTION_LOST : PLAYER_CONNECT_FAILED, message, now);
}

static json_t *describe_paths(const player_options *o) {
    static const char *const technologies[] = {"5g-sa", "5g-nsa", "wifi", "lte", "unknown"};
    json_t *paths = json_array();
    for (size_t i = 0; i < o->transport_config.path_count; i++) {
        char text[64];
        json_array_append_new(paths, json_pack("{s:s, s:s, s:s}", "name", o->paths[i].name, "local",
                                               xl_addr_format(&o->paths[i].local, text, sizeof text), "technology",
                                               technologies[o->paths[i].technology]));
    }
    return paths;
}

/* The resolved configuration, for the start record. */
static json_t *describe(const player_options *o) {
    const player_config *p = &o->player;
    const player_transport_config *t = &o->transport_config;
    json_t *out =
        json_pack("{s:s, s:s?, s:s, s:s, s:o, s:I}", "transport", o->transport->name, "scheme", t->scheme, "server",
                  t->authority, "url", t->target, "paths", describe_paths(o), "seed", (json_int_t)t->seed);
    json_t *content = json_pack("{s:I, s:I, s:f, s:I, s:I}", "video_bytes", (json_int_t)p->video.bytes, "bitrate_bps",
                                (json_int_t)p->video.bitrate_bps, "fps", p->video.fps_milli / 1e3, "first_frame_bytes",
                                (json_int_t)p->video.first_frame_bytes, "play_bytes",
                                (json_int_t)(p->play_bytes != 0 ? p->play_bytes : p->video.bytes));
    json_t *play =
        json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:b}", "chunk_bytes", (json_int_t)p->chunk_bytes, "concurrency",
                  (int)p->concurrency, "startup_buffer_ms", (double)p->startup_buffer_us / 1e3, "rebuffer_target_ms",
                  (double)p->rebuffer_target_us / 1e3, "max_buffer_ms", (double)p->max_buffer_us / 1e3, "time_limit_s",
                  (double)p->time_limit_us / 1e6, "verify", (int)p->verify);
    json_object_update(out, content);
    json_object_update(out, play);
    json_decref(content);
    json_decref(play);
    return out;
}

static void write_summary(driver *d, const player_summary *s, uint64_t now) {
    json_t *fields = player_summary_fields(s);
    size_t count = d->options.transport_config.path_count;
    player_path_stats stats[PLAYER_MAX_PATHS] = {0};
    json_t *paths = json_array();
    if (d->transport != NULL) {
        d->ops->path_stats(d->transport, stats);
    }
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(paths,
                              json_pack("{s:s, s:I, s:I, s:I}", "name", d->options.paths[i].name, "bytes_sent",
                                        (json_int_t)stats[i].bytes_sent, "bytes_received",
                                        (json_int_t)stats[i].bytes_received, "srtt_us", (json_int_t)stats[i].srtt_us));
    }
    json_object_set_new(fields, "paths", paths);
    if (d->transport != NULL && d->ops->summary != NULL) {
        json_object_set_new(fields, "transport", d->ops->summary(d->transport));
    }
    jsonl_write(d->log, "summary", fields, now);
}

static void wait_for_events(driver *d, const sigset_t *unblocked) {
    uint64_t next = player_next_timeout(d->player), transport = d->ops->next_timeout(d->transport);
    next = transport < next ? transport : next;
    uint64_t now = clock_us(), left = next > now ? next - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000), .tv_nsec = (long)(left % 1000000) * 1000};
    struct epoll_event events[MAX_EVENTS];
    epoll_pwait2(d->epoll, events, MAX_EVENTS, next == XL_NEVER ? NULL : &timeout, unblocked);
}

static void update_qoe(driver *d, uint64_t now) {
    if (d->ops->set_qoe != NULL) {
        xl_qoe qoe;
        player_qoe(d->player, now, &qoe);
        d->ops->set_qoe(d->transport, &qoe, now);
    }
}

static void make_requests(driver *d, uint64_t now) {
    uint64_t chunk = 0, first = 0, last = 0;
    bool made = false;
    while (player_wants(d->player, now, &chunk, &first, &last) &&
           d->ops->request(d->transport, chunk, first, last, now)) {
        player_requested(d->player, now);
        made = true;
    }
    if (made) {
        d->ops->step(d->transport, now);
    }
}

static void run(driver *d, const sigset_t *unblocked) {
    while (!player_over(d->player)) {
        uint64_t now = clock_us();
        if (interrupted) {
            player_fail(d->player, PLAYER_INTERRUPTED, "interrupted by a signal", now);
            break;
        }
        player_step(d->player, now);
        if (player_over(d->player)) {
            break;
        }
        update_qoe(d, now);
        d->ops->step(d->transport, now);
        make_requests(d, now);
        if (!player_over(d->player)) {
            wait_for_events(d, unblocked);
        }
    }
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

static int report_outcome(const driver *d, const player_summary *s) {
    const player_transport_config *t = &d->options.transport_config;
    switch (s->outcome) {
    case PLAYER_COMPLETE:
    case PLAYER_TIME_LIMIT:
        return 0;
    case PLAYER_CONNECT_FAILED:
        fprintf(stderr, PROGRAM ": cannot connect to %s by %s: %s.\n", t->authority, d->ops->name, s->message);
        return 2;
    case PLAYER_CONNECTION_LOST:
        fprintf(stderr, PROGRAM ": the connection to %s was lost: %s.\n", t->authority, s->message);
        return 1;
    default:
        fprintf(stderr, PROGRAM ": %s.\n", s->message);
        return 1;
    }
}

/* Plays; returns the exit status. */
static int play(driver *d, const sigset_t *unblocked) {
    const player_transport_callbacks callbacks = {
        .user = d,
        .watch = on_watch,
        .connected = on_connected,
        .data = on_data,
        .done = on_done,
        .failed = on_failed,
        .path = on_path,
        .migrated = on_migrated,
        .closed = on_closed,
    };
    char error[PLAYER_ERROR_BYTES] = "";
    d->transport = d->ops->create(&d->options.transport_config, &callbacks, d->start_us, error);
    if (d->transport == NULL) {
        player_fail(d->player, PLAYER_CONNECT_FAILED, error, clock_us());
    }
    run(d, unblocked);
    player_summary summary;
    player_summarise(d->player, &summary);
    uint64_t now = clock_us();
    write_summary(d, &summary, now);
    if (d->transport != NULL) {
        d->ops->close(d->transport, now);
    }
    return report_outcome(d, &summary);
}

/* Opens what the run writes to. False with a sentence on stderr. */
static bool open_files(driver *d, int argc, char **argv) {
    const player_options *o = &d->options;
    d->log = jsonl_open(o->out_file, d->start_us);
    if (d->log == NULL) {
        fprintf(stderr, PROGRAM ": cannot write %s: %s.\n", o->out_file, strerror(errno));
        return false;
    }
    jsonl_write_start(d->log, argc, argv, describe(o));
    if (o->save_file != NULL) {
        d->save_fd = open(o->save_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (d->save_fd < 0) {
            fprintf(stderr, PROGRAM ": cannot write %s: %s.\n", o->save_file, strerror(errno));
            return false;
        }
    }
    return true;
}

static int start(driver *d, int argc, char **argv) {
    sigset_t unblocked;
    set_up_signals(&unblocked);
    d->start_us = clock_us();
    d->ops = d->options.transport;
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (d->epoll < 0) {
        fprintf(stderr, PROGRAM ": no epoll: %s.\n", strerror(errno));
        return 2;
    }
    if (!open_files(d, argc, argv)) {
        return 2;
    }
    d->player = player_new(&d->options.player, on_player_event, d, d->start_us);
    if (d->player == NULL) {
        fprintf(stderr, PROGRAM ": out of memory.\n");
        return 2;
    }
    return play(d, &unblocked);
}

int main(int argc, char **argv) {
    static driver d = {.epoll = -1, .save_fd = -1};
    char error[512];
    if (!player_options_parse(argc, argv, &d.options, error, sizeof error)) {
        fprintf(stderr, PROGRAM ": %s\n", error);
        return 2;
    }
    if (d.options.help) {
        fputs(player_options_usage(), stdout);
        return 0;
    }
    int status = start(&d, argc, argv);
    if (!jsonl_close(d.log)) {
        fprintf(stderr, PROGRAM ": cannot write %s to its end: %s.\n", d.options.out_file, strerror(errno));
        status = status != 0 ? status : 1;
    }
    if (d.save_fd >= 0) {
        close(d.save_fd);
    }
    if (d.epoll >= 0) {
        close(d.epoll);
    }
    player_free(d.player);
    return status;
}
