#include "peers/relay/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/jsonl.h"
#include "base/net.h"
#include "base/wait.h"

#define MAX_EVENTS     64
#define BACKLOG        64
#define REPORT_US      UINT64_C(1000000) /* least interval of path records */
#define ACCEPT_A_ROUND 16

typedef struct {
    uint8_t bytes[RELAY_BUFFER_BYTES];
    size_t from, len; /* bytes[from .. from + len) wait */
} buffer;

struct relay_stream {
    relay *owner;
    relay_stream *next, **link; /* in the relay's list of streams */
    int fd;                     /* -1: dead; freed at the end of the round */
    uint32_t events;
    bool is_watched; /* in the epoll set */
    bool is_connecting;
    bool has_failed; /* gone() is due */
    buffer in, out;
    bool in_ended, in_fin_taken; /* end of file was read; the stack has taken it */
    bool out_fin, out_ended;     /* relay_finish() was called; shutdown() was called */
    bool is_full;                /* relay_push() has filled the buffer; writable() is due */
    max_align_t state[];         /* of the stack */
};

struct relay {
    const relay_options *options;
    relay_stack ops;
    void *stack;
    int epoll, listener;
    sigset_t unblocked; /* signal mask while it waits */
    int spare;          /* reserved descriptor, closed when the process has none left; -1: none */
    bool has_refused;
    uint64_t now; /* time of the last wake-up */
    relay_stream *streams, *dead;
    bool is_over, has_failed;
    uint64_t report_at;
    relay_path_facts reported[RELAY_MAX_PATHS];
};

/* ---- records ---- */

static void report_path(relay *r, size_t i) {
    relay_path_facts now = {0}, *last = &r->reported[i];
    r->ops.path(r->stack, i, &now);
    if (!now.state || (last->state && strcmp(last->state, now.state) == 0 && last->bytes_sent == now.bytes_sent &&
                       last->bytes_received == now.bytes_received))
        return;
    *last = now;
    jsonl_print(json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "event", "path", "name", r->options->paths[i].name, "state",
                          now.state, "bytes_sent", (json_int_t)now.bytes_sent, "bytes_received",
                          (json_int_t)now.bytes_received, "srtt_us",
                          now.srtt_us > 0 ? json_integer((json_int_t)now.srtt_us) : json_null()),
                JSON_COMPACT);
}

/* Prints a record of each path that has changed. */
static void report_paths(relay *r) {
    for (size_t i = 0; r->ops.path && i < r->options->path_count; i++)
        report_path(r, i);
}

void relay_close(relay *r, const char *reason, bool is_failure) {
    if (r->is_over)
        return;
    r->is_over = true;
    r->has_failed = is_failure;
    report_paths(r);
    jsonl_print(json_pack("{s:s, s:s}", "event", "closed", "reason", reason), JSON_COMPACT);
}

/* ---- streams ---- */

static relay_stream *stream_new(relay *r, int fd) {
    relay_stream *s = calloc(1, sizeof *s + r->ops.state_bytes);
    if (!s)
        return NULL;
    s->owner = r;
    s->fd = fd;
    s->next = r->streams;
    s->link = &r->streams;
    if (s->next)
        s->next->link = &s->next;
    r->streams = s;
    return s;
}

/* Closes the socket. The memory is freed after the round, because a caller may still use the pointer. */
static void stream_end(relay_stream *s) {
    if (s->fd < 0)
        return;
    if (s->owner->ops.release)
        s->owner->ops.release(s->owner->stack, s);
    close(s->fd); /* also removes it from the epoll set */
    s->fd = -1;
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->next = s->owner->dead;
    s->owner->dead = s;
}

static void free_dead(relay *r) {
    while (r->dead) {
        relay_stream *s = r->dead;
        r->dead = s->next;
        free(s);
    }
}

static bool set_watch(relay_stream *s, bool is_watched, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = s};
    const int verb = is_watched ? s->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(s->owner->epoll, verb, s->fd, &event) != 0)
        return false;
    s->events = events;
    s->is_watched = is_watched;
    return true;
}

/* epoll reports a hang-up at every wait, for any event mask. After our shutdown() it is expected, so a socket without
 * events to wait for is removed from the set. */
static void watch_stream(relay_stream *s) {
    if (s->fd < 0)
        return;
    const bool has_room = !s->in_ended && !s->has_failed && s->in.len < RELAY_BUFFER_BYTES;
    const uint32_t events =
        (has_room && !s->is_connecting ? EPOLLIN : 0u) | (s->out.len > 0 || s->is_connecting ? EPOLLOUT : 0u);
    const bool is_watched = events != 0 || !s->out_ended;
    if (events != s->events || is_watched != s->is_watched)
        (void)set_watch(s, is_watched, events);
}

static bool begin_watch(relay_stream *s) {
    return set_watch(s, true, 0);
}

static bool is_alive(const relay_stream *s) {
    return s->fd >= 0 && !s->has_failed;
}

static void end_if_complete(relay_stream *s) {
    if (!is_alive(s) || !s->in_fin_taken || !s->out_ended)
        return;
    stream_end(s);
}

/* gone() is called later, because this may be called within a function of the stack that still uses the stream. */
static void stream_failed(relay_stream *s) {
    s->has_failed = true;
}

/* Ends all failed streams. Returns whether there were any. */
static bool end_failed(relay *r) {
    bool any = false;
    for (relay_stream *s = r->streams, *next; s; s = next) {
        next = s->next;
        if (!s->has_failed)
            continue;
        r->ops.gone(r->stack, s);
        stream_end(s);
        any = true;
    }
    return any;
}

/* Returns how many of the bytes the socket took. */
static size_t write_bytes(relay_stream *s, const uint8_t *data, size_t len) {
    size_t done = 0;
    while (is_alive(s) && done < len && !s->is_connecting) {
        const ssize_t n = send(s->fd, data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0) {
            stream_failed(s);
            break;
        }
        done += (size_t)n;
    }
    return done;
}

static void write_out(relay_stream *s) {
    const size_t n = write_bytes(s, s->out.bytes + s->out.from, s->out.len);
    s->out.from += n;
    s->out.len -= n;
    if (is_alive(s) && s->out.len == 0 && s->out_fin && !s->out_ended && !s->is_connecting) {
        shutdown(s->fd, SHUT_WR);
        s->out_ended = true;
        end_if_complete(s);
    }
}

static void compact(buffer *b) {
    if (b->from > 0)
        memmove(b->bytes, b->bytes + b->from, b->len);
    b->from = 0;
}

/* Returns the room for the next local bytes at *at. *is_own: in the relay's buffer. */
static size_t place_for(relay_stream *s, uint8_t **at, bool *is_own) {
    const relay *r = s->owner;
    const size_t space = r->ops.space && s->in.len == 0 ? r->ops.space(r->stack, s, at) : 0;
    *is_own = space == 0;
    if (!*is_own)
        return space;
    compact(&s->in);
    *at = s->in.bytes + s->in.len;
    return RELAY_BUFFER_BYTES - s->in.len;
}

static void read_in(relay_stream *s) {
    relay *r = s->owner;
    uint8_t *at;
    bool is_own;
    const size_t room = s->in_ended ? 0 : place_for(s, &at, &is_own);
    if (room == 0)
        return;
    const ssize_t n = recv(s->fd, at, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        stream_failed(s);
        return;
    }
    s->in_ended = n == 0;
    if (is_own) {
        s->in.len += (size_t)n;
        r->ops.readable(r->stack, s);
    } else {
        r->ops.filled(r->stack, s, (size_t)n, n == 0);
    }
}

static void finish_connecting(relay_stream *s) {
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    s->is_connecting = false;
    if (error != 0)
        stream_failed(s);
}

static void stream_ready(relay_stream *s, uint32_t events) {
    if (s->is_connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        finish_connecting(s);
    if (is_alive(s) && (events & EPOLLOUT))
        write_out(s);
    if (is_alive(s) && s->is_full && s->out.len < RELAY_BUFFER_BYTES) {
        s->is_full = false;
        s->owner->ops.writable(s->owner->stack, s);
    }
    if (is_alive(s) && (events & EPOLLIN))
        read_in(s);
    else if (is_alive(s) && ((events & EPOLLERR) || ((events & EPOLLHUP) && !s->out_ended)))
        stream_failed(s); /* nobody will read further bytes */
    watch_stream(s);
}

static int accept_one(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static int open_spare(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int relay_accept(relay *r, int listener) {
    int fd;
    while ((fd = accept_one(listener)) < 0 && (errno == EMFILE || errno == ENFILE)) {
        descriptor_close(&r->spare);
        int refused = accept_one(listener);
        descriptor_close(&refused);
        r->spare = open_spare();
        if (!r->has_refused)
            fprintf(stderr, "relay: there is no descriptor for a connection, which is refused.\n");
        r->has_refused = true;
        if (refused < 0)
            return -1;
    }
    return fd;
}

static void accept_streams(relay *r) {
    for (int i = 0; i < ACCEPT_A_ROUND; i++) {
        const int fd = relay_accept(r, r->listener);
        if (fd < 0)
            return;
        relay_stream *s = stream_new(r, fd);
        if (!s) {
            close(fd);
            return;
        }
        if (!begin_watch(s)) {
            stream_end(s);
            return;
        }
        r->ops.open(r->stack, s);
        watch_stream(s);
    }
}

relay_stream *relay_connect(relay *r) {
    struct sockaddr_storage to;
    const socklen_t len = net_to_sockaddr(&r->options->upstream, &to);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    relay_stream *s = fd >= 0 ? stream_new(r, fd) : NULL;
    if (!s) {
        descriptor_close(&fd);
        return NULL;
    }
    s->is_connecting = true;
    if ((connect(fd, (struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS) || !begin_watch(s)) {
        stream_end(s);
        return NULL;
    }
    watch_stream(s);
    return s;
}

relay_stream *relay_first(const relay *r) {
    return r->streams;
}

relay_stream *relay_next(const relay_stream *s) {
    return s->next;
}

void *relay_state(relay_stream *s) {
    return s->state;
}

relay_stream *relay_stream_of(void *state) {
    return (relay_stream *)(void *)((char *)state - offsetof(relay_stream, state));
}

size_t relay_peek(const relay_stream *s, const uint8_t **data, bool *fin) {
    *data = s->in.bytes + s->in.from;
    *fin = s->in_ended;
    return s->in.len;
}

void relay_consume(relay_stream *s, size_t len, bool fin) {
    s->in.from += len;
    s->in.len -= len;
    s->in_fin_taken |= fin;
    end_if_complete(s);
    watch_stream(s);
}

size_t relay_room(const relay_stream *s) {
    return RELAY_BUFFER_BYTES - s->out.len;
}

size_t relay_push(relay_stream *s, const uint8_t *data, size_t len) {
    size_t done = s->out.len == 0 ? write_bytes(s, data, len) : 0;
    if (done < len) {
        const size_t room = relay_room(s), n = len - done < room ? len - done : room;
        compact(&s->out);
        memcpy(s->out.bytes + s->out.len, data + done, n);
        s->out.len += n;
        done += n;
    }
    s->is_full |= s->out.len == RELAY_BUFFER_BYTES;
    watch_stream(s);
    return done;
}

void relay_finish(relay_stream *s) {
    s->out_fin = true;
    write_out(s);
    watch_stream(s);
}

void relay_abort(relay_stream *s) {
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    stream_end(s);
}

/* ---- the relay ---- */

static bool listen_locally(relay *r, char *error) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int len = snprintf(at.sun_path, sizeof at.sun_path, "%s", r->options->socket_file);
    if ((size_t)len >= sizeof at.sun_path)
        return error_set(error, RELAY_ERROR_BYTES, "The name of the socket is longer than %zu bytes.",
                         sizeof at.sun_path - 1);
    r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &r->listener};
    return (r->listener >= 0 && bind(r->listener, (struct sockaddr *)&at, sizeof at) == 0 &&
            listen(r->listener, BACKLOG) == 0 && epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->listener, &event) == 0) ||
           error_set(error, RELAY_ERROR_BYTES, "Cannot listen on %.120s: %s.", r->options->socket_file,
                     strerror(errno));
}

relay *relay_new(const relay_options *options, const relay_stack *ops, void *stack, char *error) {
    relay *r = calloc(1, sizeof *r);
    if (!r)
        return error_null(error, RELAY_ERROR_BYTES, "There is no memory.");
    r->options = options;
    r->ops = *ops;
    r->stack = stack;
    r->listener = -1;
    r->spare = open_spare();
    r->now = clock_us();
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    wait_catch_end(&r->unblocked);
    if (r->epoll < 0) {
        snprintf(error, RELAY_ERROR_BYTES, "Cannot wait for events: %s.", strerror(errno));
        relay_free(r);
        return NULL;
    }
    if (!options->is_server && !listen_locally(r, error)) {
        relay_free(r);
        return NULL;
    }
    return r;
}

uint64_t *relay_clock(relay *r) {
    return &r->now;
}

bool relay_watch(relay *r, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void wait_and_handle(relay *r) {
    struct epoll_event events[MAX_EVENTS];
    const int n = wait_events(r->epoll, events, MAX_EVENTS, r->ops.next_timeout(r->stack), &r->unblocked);
    r->now = clock_us();
    if (wait_is_ended)
        relay_close(r, "signal", false);
    for (int i = 0; i < n && !r->is_over; i++) {
        void *of = events[i].data.ptr;
        if (of == &r->listener)
            accept_streams(r);
        else if (of && ((relay_stream *)of)->fd >= 0)
            stream_ready(of, events[i].events);
    }
    end_failed(r);
    do
        r->ops.step(r->stack, r->now);
    while (end_failed(r));
    free_dead(r);
}

int relay_run(relay *r) {
    char text[64];
    if (r->options->is_server)
        jsonl_print(
            json_pack("{s:s, s:s}", "event", "ready", "listen", xl_addr_format(&r->options->listen, text, sizeof text)),
            JSON_COMPACT);
    else
        jsonl_print(json_pack("{s:s, s:s}", "event", "ready", "socket", r->options->socket_file), JSON_COMPACT);
    while (!r->is_over) {
        wait_and_handle(r);
        if (!r->is_over && r->now >= r->report_at) {
            report_paths(r);
            r->report_at = r->now + REPORT_US;
        }
    }
    r->ops.step(r->stack, r->now);
    return r->has_failed ? 1 : 0;
}

void relay_release_all(relay *r) {
    while (r && r->streams)
        stream_end(r->streams);
}

void relay_free(relay *r) {
    if (!r)
        return;
    relay_release_all(r);
    free_dead(r);
    if (r->listener >= 0) {
        close(r->listener);
        unlink(r->options->socket_file);
    }
    descriptor_close(&r->spare);
    descriptor_close(&r->epoll);
    free(r);
}
