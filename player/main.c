/* xlink-player: plays videos over one transport and writes events as JSON Lines. Driver of player/session.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/jsonl.h"
#include "base/wait.h"
#include "player/options.h"
#include "player/session.h"

#define PROGRAM    "xlink-player"
#define MAX_EVENTS 64

#define FLUSH_US 250000 /* least time between two flushes of the log */

typedef struct {
    player_options options;
    player_session session;
    jsonl *log;
    uint64_t start_us;
    int epoll, save_fd;
    uint64_t next_flush_us;
} driver;

static void on_watch(void *user, int fd, uint32_t events) {
    driver *d = user;
    struct epoll_event e = {.events = events, .data = {.fd = fd}};
    if (events == 0) {
        epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
    } else if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, fd, &e) != 0 && epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        /* The step at the next timeout serves the socket without a watch. */
        error_say(PROGRAM, "cannot wait for a socket: %s.", strerror(errno));
    }
}

static bool save(void *user, uint64_t at, const uint8_t *data, size_t len) {
    const driver *d = user;
    while (len > 0) {
        ssize_t n = pwrite(d->save_fd, data, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

static void wait_for_events(driver *d, const sigset_t *unblocked) {
    struct epoll_event events[MAX_EVENTS];
    wait_events(d->epoll, events, MAX_EVENTS, player_session_next_timeout(&d->session), unblocked);
}

static void run(driver *d, const sigset_t *unblocked) {
    while (!player_session_over(&d->session)) {
        uint64_t now = clock_us();
        if (wait_is_ended) {
            player_fail(d->session.player, PLAYER_INTERRUPTED, "interrupted by a signal", now);
            break;
        }
        player_session_step(&d->session, now);
        if (now >= d->next_flush_us) {
            jsonl_flush(d->log);
            d->next_flush_us = now + FLUSH_US;
        }
        if (!player_session_over(&d->session))
            wait_for_events(d, unblocked);
    }
}

/* Opens the output files. False with a sentence on stderr. */
static bool open_files(driver *d, int argc, char **argv) {
    const player_options *o = &d->options;
    d->log = jsonl_open(o->out_file, d->start_us);
    if (!d->log)
        return error_say(PROGRAM, "cannot write %s: %s.", o->out_file, strerror(errno));
    jsonl_write_start(d->log, argc, argv, player_session_describe(o));
    random_key_warn(&o->transport_config.seed, PROGRAM, d->log, d->start_us);
    if (o->save_file) {
        d->save_fd = open(o->save_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (d->save_fd < 0)
            return error_say(PROGRAM, "cannot write %s: %s.", o->save_file, strerror(errno));
    }
    return true;
}

/* Tells mpshell --start-when-ready to start its links, and waits until it has. */
static void wait_for_links(void) {
    const char *number = getenv("MPSHELL_READY_FD");
    char byte = 'r';
    if (!number)
        return;
    const int fd = atoi(number);
    if (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) != 1)
        error_say(PROGRAM, "mpshell ended before its links started.");
    close(fd);
}

static int start(driver *d, int argc, char **argv) {
    sigset_t unblocked;
    player_transport_config *transport = &d->options.transport_config;
    char problem[PLAYER_ERROR_BYTES];
    if (!random_key_make(&transport->seed, "client", transport->random_key, problem, sizeof problem))
        return error_status(PROGRAM, "%s.", problem);
    transport->random_packet_numbers = !transport->seed.given;
    wait_for_links();
    wait_catch_end(&unblocked);
    signal(SIGPIPE, SIG_IGN);
    d->start_us = clock_us();
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (d->epoll < 0)
        return error_status(PROGRAM, "no epoll: %s.", strerror(errno));
    if (!open_files(d, argc, argv))
        return 2;
    const player_session_hooks hooks = {.user = d, .watch = on_watch, .save = d->save_fd >= 0 ? save : NULL};
    if (!player_session_start(&d->session, &d->options, &hooks, d->log, d->start_us))
        return error_status(PROGRAM, "out of memory.");
    run(d, &unblocked);
    char error[PLAYER_SESSION_ERROR_BYTES] = "";
    int status = player_session_finish(&d->session, clock_us(), error);
    if (status != 0)
        error_say(PROGRAM, "%s.", error);
    return status;
}

int main(int argc, char **argv) {
    static driver d = {.epoll = -1, .save_fd = -1};
    char error[SETTINGS_ERROR_BYTES];
    if (!player_options_parse(argc, argv, &d.options, error))
        return error_status(PROGRAM, "%s", error);
    if (d.options.help) {
        player_options_print_usage();
        return 0;
    }
    int status = start(&d, argc, argv);
    status = jsonl_end(d.log, PROGRAM, d.options.out_file, status);
    descriptor_close(&d.save_fd);
    descriptor_close(&d.epoll);
    player_session_free(&d.session);
    return status;
}
