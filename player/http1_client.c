#include "player/http1_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "http/http1.h"

#define CONNECT_LIMIT_US   UINT64_C(10000000)
#define SAMPLE_INTERVAL_US UINT64_C(500000)
#define READ_BYTES         ((size_t)65536)
#define READS_PER_STEP     32
#define REQUEST_BYTES      (HTTP1_MAX_TARGET_BYTES + 512)

typedef enum { CLOSED, CONNECTING, IDLE, BUSY } connection_state;

typedef struct {
    connection_state state;
    int fd;
    uint32_t events;
    uint64_t connect_deadline;

    /* The open request, if any. It may be set while CONNECTING. */
    bool has_request;
    uint64_t id, first, last;
    char out[REQUEST_BYTES];
    size_t out_len, out_sent;
    char head[HTTP1_MAX_HEAD_BYTES];
    size_t head_len, scanned;
    bool head_done, keep_alive;
    uint64_t received;
    /* For a response with status 200: the server ignored the range (RFC 9110 section 14.2). */
    bool is_whole; /* bytes after the range follow */
    uint64_t skip; /* bytes before the range that are still to be skipped */
} connection;

struct http1_client {
    http1_sockets sockets;
    void *state;
    player_transport_callbacks cb;
    const player_transport_config *config;

    bool connected, over;
    char dead[PLAYER_ERROR_BYTES]; /* why the transport ended, for closed() in the next step(); "": it has not */
    uint64_t next_sample;
    connection connections[]; /* config->concurrency */
};

static http1_client *client_of(player_transport *t) {
    return ((http1_transport *)t)->http;
}

static void watch(http1_client *t, connection *c, uint32_t events) {
    if (c->events != events) {
        c->events = events;
        t->cb.watch(t->cb.user, c->fd, events);
    }
}

static void sample(http1_client *t, const connection *c) {
    if (t->sockets.sample && (c->state == IDLE || c->state == BUSY))
        t->sockets.sample(t->state, c->fd);
}

static void close_connection(http1_client *t, connection *c) {
    if (c->state != CLOSED) {
        sample(t, c);
        watch(t, c, 0);
        descriptor_close(&c->fd);
        c->state = CLOSED;
    }
}

/* Ends the transport; step() calls closed(). */
static void die(http1_client *t, const char *why) {
    if (t->dead[0] == '\0')
        snprintf(t->dead, sizeof t->dead, "%s", why);
}

/* False with a phrase if there is no socket. step() detects all other errors. */
static bool start_connection(http1_client *t, connection *c, uint64_t now, char *error) {
    int fd = t->sockets.open(t->state, error);
    if (fd < 0)
        return false;
    c->fd = fd;
    c->events = 0;
    c->state = CONNECTING;
    c->connect_deadline = now + CONNECT_LIMIT_US;
    watch(t, c, EPOLLOUT);
    return true;
}

static void free_client(http1_client *t) {
    for (unsigned i = 0; i < t->config->concurrency; i++)
        close_connection(t, &t->connections[i]);
    free(t);
}

static http1_client *new_client(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                const http1_sockets *sockets, void *state, uint64_t now, char *error) {
    if (strlen(config->target) > HTTP1_MAX_TARGET_BYTES)
        return error_null(error, PLAYER_ERROR_BYTES, "the URL is longer than %d bytes", HTTP1_MAX_TARGET_BYTES);
    http1_client *t = calloc(1, sizeof *t + config->concurrency * sizeof(connection));
    if (!t)
        return error_null(error, PLAYER_ERROR_BYTES, "out of memory");
    t->sockets = *sockets;
    t->state = state;
    t->cb = *callbacks;
    t->config = config;
    t->next_sample = now + SAMPLE_INTERVAL_US;
    for (unsigned i = 0; i < t->config->concurrency; i++) {
        if (!start_connection(t, &t->connections[i], now, error)) {
            free_client(t);
            return NULL;
        }
    }
    return t;
}

player_transport *http1_client_open(http1_transport *transport, const player_transport_config *config,
                                    const player_transport_callbacks *callbacks, const http1_sockets *sockets,
                                    uint64_t now, char *error) {
    transport->config = config;
    transport->http = new_client(config, callbacks, sockets, transport, now, error);
    if (transport->http)
        return (player_transport *)transport;
    free(transport);
    return NULL;
}

static connection *find_connection(http1_client *t, connection_state state) {
    for (unsigned i = 0; i < t->config->concurrency; i++)
        if (t->connections[i].state == state && !t->connections[i].has_request)
            return &t->connections[i];
    return NULL;
}

bool http1_client_request(player_transport *handle, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    http1_client *t = client_of(handle);
    if (t->over || t->dead[0] != '\0')
        return false;
    connection *c = find_connection(t, IDLE);
    if (!c) {
        c = find_connection(t, CLOSED); /* it was closed after its last response, or while idle */
        char error[PLAYER_ERROR_BYTES];
        if (!c)
            return false;
        if (!start_connection(t, c, now, error)) {
            die(t, error);
            return false;
        }
    } else {
        c->state = BUSY;
    }
    c->has_request = true;
    c->id = id;
    c->first = first;
    c->last = last;
    c->out_len =
        (size_t)snprintf(c->out, sizeof c->out, "GET %s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%llu-%llu\r\n\r\n",
                         t->config->target, t->config->authority, (unsigned long long)first, (unsigned long long)last);
    c->out_sent = c->head_len = c->scanned = 0;
    c->head_done = false;
    c->received = 0;
    return true;
}

static void fail_request(http1_client *t, connection *c, const char *message, uint64_t now) {
    c->has_request = false;
    close_connection(t, c);
    t->cb.failed(t->cb.user, c->id, message, now);
}

/* Whether the head announces the requested range, or the complete resource. */
static bool right_range(const connection *c, const http1_response *r) {
    if (r->status == 200)
        return r->has_content_length && r->content_length > c->last;
    return r->has_content_length && r->content_length == c->last - c->first + 1 && r->has_content_range &&
           r->range_first == c->first && r->range_last == c->last;
}

static void take_body(http1_client *t, connection *c, const uint8_t *data, size_t len, uint64_t now) {
    uint64_t size = c->last - c->first + 1;
    size_t passed_over = len < c->skip ? len : (size_t)c->skip;
    c->skip -= passed_over;
    data += passed_over;
    len -= passed_over;
    if (len > size - c->received && !c->is_whole) {
        fail_request(t, c, "more bytes than Content-Length says", now);
        return;
    }
    len = len < size - c->received ? len : (size_t)(size - c->received);
    if (len > 0) {
        uint64_t offset = c->received;
        c->received += len;
        t->cb.data(t->cb.user, c->id, offset, data, len, now);
    }
    if (c->received == size) {
        c->has_request = false;
        c->state = IDLE;
        if (!c->keep_alive || c->is_whole) /* the rest is not needed */
            close_connection(t, c);
        t->cb.done(t->cb.user, c->id, now);
    }
}

/* Adds these bytes to the head. Returns http1_parse_response()'s result; *used: how many of them belong to the head. */
static ssize_t take_head(connection *c, const uint8_t *data, size_t len, size_t *used, http1_response *r) {
    const size_t room = sizeof c->head - c->head_len, take = len < room ? len : room, before = c->head_len;
    memcpy(c->head + before, data, take);
    c->head_len += take;
    const ssize_t head = http1_parse_response(c->head, c->head_len, &c->scanned, r);
    *used = head > 0 ? (size_t)head - before : take;
    return head;
}

/* Whether a final response follows (RFC 9110 section 15.2). 101 is an error, because no request asks for an Upgrade. */
static bool is_interim(const http1_response *r) {
    return r->status >= 100 && r->status < 200 && r->status != 101;
}

/* Collects the response's head, then passes on its body. */
static void take_bytes(http1_client *t, connection *c, const uint8_t *data, size_t len, uint64_t now) {
    if (c->head_done) {
        take_body(t, c, data, len, now);
        return;
    }
    http1_response r;
    size_t used;
    ssize_t head;
    while ((head = take_head(c, data, len, &used, &r)) > 0 && is_interim(&r)) {
        data += used;
        len -= used;
        c->head_len = c->scanned = 0;
    }
    if (head == 0)
        return;
    if (head < 0) {
        fail_request(t, c, "not an HTTP/1.1 response that this player understands", now);
        return;
    }
    if (r.status != 200 && r.status != 206) {
        char message[32];
        snprintf(message, sizeof message, "status %d", r.status);
        fail_request(t, c, message, now);
        return;
    }
    if (!right_range(c, &r)) {
        fail_request(t, c, "the response is not the range that was asked for", now);
        return;
    }
    c->head_done = true;
    c->keep_alive = r.keep_alive;
    c->is_whole = r.status == 200 && r.content_length > c->last + 1;
    c->skip = r.status == 200 ? c->first : 0;
    take_body(t, c, data + used, len - used, now);
}

static void read_all(http1_client *t, connection *c, uint64_t now) {
    uint8_t buf[READ_BYTES];
    for (int i = 0; i < READS_PER_STEP && (c->state == BUSY || c->state == IDLE); i++) {
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            int why = n < 0 ? errno : 0;
            bool busy = c->state == BUSY;
            close_connection(t, c);
            if (busy)
                die(t, why != 0 ? strerror(why) : "the server closed the connection within a response");
            return;
        }
        if (c->state == IDLE) {
            close_connection(t, c); /* unrequested bytes */
            return;
        }
        take_bytes(t, c, buf, (size_t)n, now);
    }
}

static void write_request(http1_client *t, connection *c) {
    while (c->out_sent < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                die(t, strerror(errno));
            break;
        }
        c->out_sent += (size_t)n;
    }
}

static void finish_connecting(http1_client *t, connection *c, uint64_t now) {
    int error = 0;
    socklen_t len = sizeof error;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        die(t, strerror(error));
    } else if (getpeername(c->fd, (struct sockaddr *)&peer, &peer_len) == 0) {
        c->state = c->has_request ? BUSY : IDLE;
        if (!t->connected) {
            t->connected = true;
            t->cb.connected(t->cb.user, now);
        }
    } else if (now >= c->connect_deadline) {
        die(t, "no answer from the server");
    }
}

static void step_connection(http1_client *t, connection *c, uint64_t now) {
    if (c->state == CONNECTING)
        finish_connecting(t, c, now);
    if (c->state == BUSY)
        write_request(t, c);
    if (c->state == BUSY || c->state == IDLE)
        read_all(t, c, now);
    if (c->state == CONNECTING)
        watch(t, c, EPOLLOUT);
    else if (c->state != CLOSED)
        watch(t, c, EPOLLIN | (c->state == BUSY && c->out_sent < c->out_len ? EPOLLOUT : 0u));
}

void http1_client_sample(http1_client *t) {
    for (unsigned i = 0; i < t->config->concurrency; i++)
        sample(t, &t->connections[i]);
}

void http1_client_step(player_transport *handle, uint64_t now) {
    http1_client *t = client_of(handle);
    if (t->over)
        return;
    for (unsigned i = 0; i < t->config->concurrency && t->dead[0] == '\0'; i++)
        step_connection(t, &t->connections[i], now);
    if (t->dead[0] != '\0') {
        t->over = true;
        for (unsigned i = 0; i < t->config->concurrency; i++)
            close_connection(t, &t->connections[i]);
        t->cb.closed(t->cb.user, t->dead, now);
        return;
    }
    if (now >= t->next_sample) {
        http1_client_sample(t);
        t->next_sample = now + SAMPLE_INTERVAL_US;
    }
}

uint64_t http1_client_next_timeout(const player_transport *handle) {
    const http1_client *t = ((const http1_transport *)handle)->http;
    if (t->over)
        return XL_NEVER;
    uint64_t next = t->dead[0] != '\0' ? 0 : t->next_sample;
    for (unsigned i = 0; i < t->config->concurrency; i++) {
        const connection *c = &t->connections[i];
        if (c->state == CONNECTING && c->connect_deadline < next)
            next = c->connect_deadline;
    }
    return next;
}

void http1_client_close(player_transport *handle, uint64_t now) {
    (void)now;
    free_client(client_of(handle));
    free(handle);
}
