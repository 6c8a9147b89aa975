/* HTTP/1.1 over TCP, or over MPTCP if the listener is an MPTCP socket. A connection has fixed buffers, and each of its
 * states has a time limit. If there is no room for a new connection, or none for its address, the connection that has
 * been idle longest is closed. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/net.h"
#include "base/tcp_stats.h"
#include "http/http1.h"
#include "server/process.h"
#include "server/report.h"

#define MAX_CONNECTIONS    256 /* unless --max-connections says otherwise */
#define OUT_BYTES          ((size_t)65536)
#define SENDS_PER_ROUND    16
#define HEAD_LIMIT_US      UINT64_C(10000000)  /* from the first byte of a head to its last */
#define IDLE_LIMIT_US      UINT64_C(120000000) /* between requests, and without progress while sending */
#define DRAIN_LIMIT_US     UINT64_C(2000000)   /* after an error, so that the client can read the answer */
#define STALLED_US         UINT64_C(10000000)  /* without progress of its response a connection then counts as idle */
#define ACCEPT_PAUSE_US    UINT64_C(100000)
#define SAMPLE_INTERVAL_US UINT64_C(1000000)

typedef enum { READING, RESPONDING, DRAINING } connection_state;

typedef struct connection {
    server_watch watch;
    server_service *service;
    struct connection *previous, *next;
    connection_state state;
    uint32_t events;
    uint64_t number, requests, deadline, written;
    uint64_t since; /* last progress of the response; without one, end of the previous response, or accept */
    xl_addr remote;
    char in[HTTP1_MAX_HEAD_BYTES];
    size_t in_len, scanned;
    bool eof; /* the client has closed its side; requests that it sent are still answered */
    bool keep_alive;
    catalogue_response response;
    uint64_t body_bytes; /* sent of this response's body */
    uint8_t out[OUT_BYTES];
    size_t out_len, out_sent;
    tcp_stats stats;
} connection;

struct server_service {
    server *server;
    server_watch listener;
    bool listening, mptcp;
    int spare; /* descriptor that is closed for a moment to accept and refuse a connection; -1: closed */
    uint64_t resume_accept, next_sample;
    connection *first;
    size_t count, most, most_per_address; /* 0: no limit */
    server_totals totals;
};

static void sample(connection *c) {
    tcp_stats_sample(&c->stats, c->watch.fd, c->service->mptcp);
}

static void set_events(connection *c, uint32_t events) {
    if (c->events != events) {
        c->events = events;
        server_watch_modify(c->service->server, &c->watch, events);
    }
}

static json_t *describe_flow(size_t id, const tcp_flow *flow) {
    char local[64], remote[64];
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id", (json_int_t)id, "local",
                     xl_addr_format(&flow->local, local, sizeof local), "remote",
                     xl_addr_format(&flow->remote, remote, sizeof remote), "bytes_sent", (json_int_t)flow->bytes_sent,
                     "retransmitted_bytes", (json_int_t)flow->bytes_retransmitted, "bytes_received",
                     (json_int_t)flow->bytes_received, "packets_sent", (json_int_t)flow->packets_sent, "packets_lost",
                     (json_int_t)flow->packets_lost, "srtt_us", (json_int_t)flow->srtt_us, "cwnd_bytes",
                     (json_int_t)flow->cwnd_bytes);
}

/* Adds a connection's figures to the totals. The kernel's count of bytes sent is not used, because it includes again
 * what a local queue refused. */
static json_t *account(connection *c) {
    server_totals *totals = &c->service->totals;
    json_t *paths = json_array();
    uint64_t retransmitted = 0;
    for (size_t i = 0; i < c->stats.count; i++) {
        json_t *path = describe_flow(i, &c->stats.flows[i]);
        if (json_array_size(totals->paths) < SERVER_SUMMARY_PATHS)
            json_array_append(totals->paths, path);
        json_array_append_new(paths, path);
        retransmitted += c->stats.flows[i].bytes_retransmitted;
    }
    uint64_t reinjected = tcp_stats_reinjected(&c->stats);
    totals->stream_bytes_sent += c->written + retransmitted + reinjected;
    totals->retransmitted_bytes += retransmitted;
    totals->reinjected_bytes += reinjected;
    totals->silent_connections += !c->stats.knows_data_sent && c->stats.fallbacks == 0;
    return paths;
}

static void close_connection(connection *c, const char *reason, uint64_t now) {
    server_service *s = c->service;
    sample(c);
    catalogue_body_close(&c->response.body);
    char remote[64], cc[32] = "";
    socklen_t cc_len = sizeof cc - 1;
    getsockopt(c->watch.fd, IPPROTO_TCP, TCP_CONGESTION, cc, &cc_len);
    jsonl_write(s->server->log, "connection_closed",
                json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:o}", "conn", (json_int_t)c->number, "remote",
                          xl_addr_format(&c->remote, remote, sizeof remote), "reason", reason, "congestion", cc,
                          "requests", (json_int_t)c->requests, "bytes_written", (json_int_t)c->written, "paths",
                          account(c)),
                now);
    server_watch_remove(s->server, &c->watch);
    close(c->watch.fd);
    if (c->previous)
        c->previous->next = c->next;
    else
        s->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    s->count--;
    free(c);
}

/* Writes the response's head into the empty send buffer. */
static void write_head(connection *c, int status, const char *fields) {
    c->out_len = (size_t)snprintf((char *)c->out, sizeof c->out, "HTTP/1.1 %d %s\r\n%s%s\r\n", status,
                                  http1_reason(status), fields, c->keep_alive ? "" : "Connection: close\r\n");
    c->out_sent = 0;
    c->state = RESPONDING;
    c->body_bytes = 0;
}

static void respond(connection *c, const http1_request *r, uint64_t now) {
    catalogue_respond(c->service->server->catalogue, r->method, r->target, r->range[0] != '\0' ? r->range : NULL,
                      &c->response);
    const catalogue_response *a = &c->response;
    char fields[512];
    int n = snprintf(fields, sizeof fields, "Content-Type: %s\r\nContent-Length: %llu\r\n%s", a->content_type,
                     (unsigned long long)a->content_length, a->accept_ranges ? "Accept-Ranges: bytes\r\n" : "");
    if (a->content_range[0] != '\0')
        n += snprintf(fields + n, sizeof fields - (size_t)n, "Content-Range: %s\r\n", a->content_range);
    if (a->allow)
        n += snprintf(fields + n, sizeof fields - (size_t)n, "Allow: GET, HEAD\r\n");
    if (a->retry_after)
        snprintf(fields + n, sizeof fields - (size_t)n, "Retry-After: " CATALOGUE_RETRY_AFTER "\r\n");
    c->keep_alive = r->keep_alive;
    write_head(c, a->status, fields);
    jsonl_write(c->service->server->log, "request", server_request_fields(c->number, c->requests, r->target, a), now);
}

/* Takes the next complete request from the buffer, if there is one. */
static void take_request(connection *c, uint64_t now) {
    http1_request r;
    ssize_t head = http1_parse_request(c->in, c->in_len, &c->scanned, &r);
    if (head == 0)
        return;
    c->since = now;
    if (head < 0) {
        int status = (int)-head;
        c->keep_alive = false;
        c->in_len = 0;
        c->response = (catalogue_response){.status = status, .body = {.handle = -1}};
        write_head(c, status, "Content-Length: 0\r\n");
        jsonl_write(c->service->server->log, "request",
                    server_request_fields(c->number, c->requests, NULL, &c->response), now);
        return;
    }
    c->in_len -= (size_t)head;
    memmove(c->in, c->in + head, c->in_len);
    c->scanned = 0;
    respond(c, &r, now);
}

static void response_done(connection *c, uint64_t now) {
    jsonl_write(c->service->server->log, "response_done",
                json_pack("{s:I, s:I, s:I}", "conn", (json_int_t)c->number, "stream", (json_int_t)c->requests, "bytes",
                          (json_int_t)c->body_bytes),
                now);
    catalogue_body_close(&c->response.body);
    c->requests++;
    c->since = now;
    if (c->keep_alive) {
        c->state = READING;
        c->deadline = now + (c->in_len > 0 ? HEAD_LIMIT_US : IDLE_LIMIT_US);
    } else {
        c->state = DRAINING;
        c->deadline = now + DRAIN_LIMIT_US;
        shutdown(c->watch.fd, SHUT_WR);
    }
}

/* Refills the send buffer from the body. False: the body cannot be read. */
static bool refill(connection *c) {
    ssize_t n = catalogue_body_read(&c->response.body, c->out, sizeof c->out);
    c->out_sent = 0;
    c->out_len = n > 0 ? (size_t)n : 0;
    c->body_bytes += c->out_len;
    return n >= 0;
}

/* Sends what the socket takes. Returns NULL or the reason to close. */
static const char *send_response(connection *c, uint64_t now) {
    for (int i = 0; i < SENDS_PER_ROUND; i++) {
        if (c->out_sent == c->out_len) {
            if (!refill(c))
                return "the file could not be read";
            if (c->out_len == 0) {
                response_done(c, now);
                return NULL;
            }
        }
        ssize_t n = send(c->watch.fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
        c->out_sent += (size_t)n;
        c->written += (size_t)n;
        c->deadline = now + IDLE_LIMIT_US;
        c->since = now;
    }
    return NULL;
}

/* Reads what has arrived. Returns NULL or the reason to close. */
static const char *receive(connection *c, uint64_t now) {
    char *to = c->in + c->in_len;
    size_t room = sizeof c->in - c->in_len;
    if (c->state == DRAINING) {
        to = c->in;
        room = sizeof c->in;
    }
    ssize_t n = recv(c->watch.fd, to, room, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
    if (n == 0) {
        c->eof = true;
    } else if (c->state == READING) {
        if (c->in_len == 0)
            c->deadline = now + HEAD_LIMIT_US;
        c->in_len += (size_t)n;
    }
    return NULL;
}

static void on_ready(server_watch *w, uint32_t events, uint64_t now) {
    connection *c = w->user;
    const char *reason = NULL;
    if (c->state != RESPONDING && !c->eof && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        reason = receive(c, now);
    /* Pipelined requests are answered one after the other while the socket takes the responses. */
    for (int i = 0; i < SENDS_PER_ROUND && !reason; i++) {
        if (c->state == READING)
            take_request(c, now);
        if (c->state != RESPONDING)
            break;
        reason = send_response(c, now);
        if (c->state == RESPONDING)
            break;
    }
    /* The buffer may still have a complete request, which is taken when the socket is writable. */
    bool more = c->state == RESPONDING || (c->state == READING && c->in_len > 0 && c->scanned == 0);
    if (!reason && c->eof && !more)
        reason = "closed by the client";
    if (reason)
        close_connection(c, reason, now);
    else
        set_events(c, (c->state == RESPONDING || c->eof ? 0u : EPOLLIN) | (more ? EPOLLOUT : 0u));
}

/* The kernel's name of a congestion controller. */
static const char *kernel_name(const char *controller) {
    return !controller ? "cubic" : strcmp(controller, "newreno") == 0 ? "reno" : controller;
}

/* Set on the listener, from which connections inherit it: the namespace's default may be any. */
static bool set_cc(int fd, const char *controller, char *error) {
    const char *name = kernel_name(controller);
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0 ||
           error_set(error, SERVER_ERROR_BYTES, "the kernel does not offer the congestion controller %s: %s", name,
                     strerror(errno));
}

static size_t count_of(const server_service *s, const xl_addr *remote) {
    size_t n = 0;
    for (const connection *c = s->first; c; c = c->next)
        n += xl_addr_same_client(&c->remote, remote);
    return n;
}

/* Closes the connection that has been idle longest, of client `of` if given. False: no connection is idle. */
static bool evict(server_service *s, const xl_addr *of, uint64_t now) {
    connection *oldest = NULL;
    for (connection *c = s->first; c; c = c->next) {
        bool is_idle = c->state != RESPONDING || now - c->since >= STALLED_US;
        if (is_idle && (!of || xl_addr_same_client(&c->remote, of)) && (!oldest || c->since <= oldest->since))
            oldest = c;
    }
    if (oldest)
        close_connection(oldest, "made room for another", now);
    return oldest != NULL;
}

static bool make_room(server_service *s, const xl_addr *remote, uint64_t now) {
    if (s->most_per_address > 0 && count_of(s, remote) >= s->most_per_address)
        return evict(s, remote, now);
    return s->count < s->most || evict(s, NULL, now);
}

/* Reads the request first, if it has arrived: closing a socket with unread data resets it, and the answer is lost. */
static void turn_away(server_service *s, int fd) {
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n"
                               "Retry-After: " CATALOGUE_RETRY_AFTER "\r\n\r\n";
    char unread[HTTP1_MAX_HEAD_BYTES];
    s->totals.refused++;
    (void)!recv(fd, unread, sizeof unread, MSG_DONTWAIT);
    (void)!send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void add_connection(server_service *s, int fd, const xl_addr *remote, uint64_t now) {
    connection *c = make_room(s, remote, now) ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        turn_away(s, fd);
        return;
    }
    int one = 1;
    char unheard[SERVER_ERROR_BYTES];
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    set_cc(fd, s->server->config.settings.scheme.cc,
           unheard); /* joining subflows do not inherit it from an MPTCP listener */
    c->service = s;
    c->remote = *remote;
    c->response.body.handle = -1;
    c->deadline = now + HEAD_LIMIT_US;
    c->since = now;
    c->events = EPOLLIN;
    c->watch = (server_watch){.fd = fd, .ready = on_ready, .user = c};
    if (!server_watch_add(s->server, &c->watch)) {
        close(fd);
        free(c);
        return;
    }
    c->number = server_next_connection(s->server);
    c->next = s->first;
    if (s->first)
        s->first->previous = c;
    s->first = c;
    s->count++;
    s->totals.connections++;
}

static int accept_one(const server_service *s, xl_addr *remote) {
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int fd = accept4(s->listener.fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        net_from_sockaddr((struct sockaddr *)&peer, remote);
    return fd;
}

/* Frees a descriptor for the waiting connection: that of a file kept open, or else of the connection that has been idle
 * longest. Or else refuses the new connection by means of the spare descriptor. False: none of these is possible. */
static bool accept_without_descriptor(server_service *s, uint64_t now) {
    xl_addr remote;
    if (server_files_release(&s->server->files) || evict(s, NULL, now))
        return true;
    if (s->spare < 0)
        return false;
    close(s->spare);
    int fd = accept_one(s, &remote);
    if (fd >= 0)
        turn_away(s, fd);
    s->spare = descriptors_reserve();
    return fd >= 0;
}

static void on_accept(server_watch *w, uint32_t events, uint64_t now) {
    (void)events;
    server_service *s = w->user;
    for (int i = 0; i < SENDS_PER_ROUND; i++) {
        xl_addr remote;
        int fd = accept_one(s, &remote), error = errno;
        if (fd >= 0) {
            add_connection(s, fd, &remote, now);
            continue;
        }
        /* The kernel returns these errors also if no connection waits. At the first call the loop has reported one. */
        bool is_short = error == EMFILE || error == ENFILE;
        if (is_short && i > 0)
            return;
        if (is_short && accept_without_descriptor(s, now))
            continue;
        if (is_short || error == ENOBUFS || error == ENOMEM) {
            /* The connection that waits would wake the loop for ever. */
            server_watch_remove(s->server, &s->listener);
            s->listening = false;
            s->resume_accept = now + ACCEPT_PAUSE_US;
            return;
        }
        if (error != EINTR && error != ECONNABORTED)
            return;
    }
}

int server_http1_listen(const server_config *config, xl_addr *bound, char *error) {
    char text[64];
    struct sockaddr_storage sa;
    socklen_t len = net_to_sockaddr(&config->http1_addr, &sa);
    xl_addr_format(&config->http1_addr, text, sizeof text);
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, config->mptcp ? IPPROTO_MPTCP : 0);
    if (fd < 0)
        return error_code(error, SERVER_ERROR_BYTES, "no %s socket: %s%s", config->mptcp ? "MPTCP" : "TCP",
                          strerror(errno),
                          config->mptcp ? " (the kernel needs CONFIG_MPTCP and sysctl net.mptcp.enabled=1)" : "");
    int one = 1, buffer = (int)config->settings.limits.send_buffer_bytes;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (buffer > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer); /* connections inherit it */
    if (!set_cc(fd, config->settings.scheme.cc, error)) {
        close(fd);
        return -1;
    }
    struct sockaddr_storage real;
    socklen_t real_len = sizeof real;
    if (bind(fd, (struct sockaddr *)&sa, len) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&real, &real_len) != 0) {
        snprintf(error, SERVER_ERROR_BYTES, "cannot listen on %s (--http1): %s", text, strerror(errno));
        close(fd);
        return -1;
    }
    net_from_sockaddr((struct sockaddr *)&real, bound);
    return fd;
}

static bool wanted(const server_config *config) {
    return config->http1_addr.family;
}

static server_service *start(server *srv, uint64_t now, xl_addr *bound, char *error) {
    const server_config *config = &srv->config;
    const server_worker *worker = srv->worker;
    int fd = worker ? worker->tcp : server_http1_listen(config, bound, error);
    server_service *s = fd >= 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        if (fd >= 0) {
            snprintf(error, SERVER_ERROR_BYTES, "out of memory");
            close(fd);
        }
        return NULL;
    }
    s->server = srv;
    s->mptcp = config->mptcp;
    s->most = config->max_connections > 0 ? (size_t)config->max_connections : MAX_CONNECTIONS;
    s->most_per_address = (size_t)server_max_per_address(config, s->most);
    s->listener = (server_watch){.fd = fd, .ready = on_accept, .user = s};
    s->listening = true;
    s->spare = descriptors_reserve();
    s->next_sample = now + SAMPLE_INTERVAL_US;
    s->totals.paths = json_array();
    if (!server_watch_add(srv, &s->listener)) {
        snprintf(error, SERVER_ERROR_BYTES, "cannot wait for connections: %s", strerror(errno));
        json_decref(s->totals.paths);
        close(fd);
        descriptor_close(&s->spare);
        free(s);
        return NULL;
    }
    return s;
}

static uint64_t next_timeout(const server_service *s) {
    uint64_t next = s->listening ? XL_NEVER : s->resume_accept;
    for (const connection *c = s->first; c; c = c->next) {
        next = c->deadline < next ? c->deadline : next;
        next = s->next_sample < next ? s->next_sample : next;
    }
    return next;
}

static void step(server_service *s, uint64_t now) {
    bool sample_now = now >= s->next_sample;
    for (connection *c = s->first, *next; c; c = next) {
        next = c->next;
        if (now >= c->deadline)
            close_connection(c, c->state == DRAINING ? "done" : "timed out", now);
        else if (sample_now)
            sample(c);
    }
    if (sample_now)
        s->next_sample = now + SAMPLE_INTERVAL_US;
    if (!s->listening && now >= s->resume_accept) {
        s->listening = server_watch_add(s->server, &s->listener);
        s->resume_accept = now + ACCEPT_PAUSE_US;
    }
}

static void stop(server_service *s, uint64_t now) {
    if (s->listening) {
        server_watch_remove(s->server, &s->listener);
        s->listening = false;
    }
    close(s->listener.fd);
    descriptor_close(&s->spare);
    while (s->first)
        close_connection(s->first, "server stopped", now);
}

static void add_totals(const server_service *s, server_totals *totals) {
    server_totals_add(totals, &s->totals);
}

static void free_service(server_service *s) {
    json_decref(s->totals.paths);
    free(s);
}

const server_service_ops server_http1_service = {
    .name = "http1",
    .wanted = wanted,
    .start = start,
    .next_timeout = next_timeout,
    .step = step,
    .stop = stop,
    .add_totals = add_totals,
    .free = free_service,
};
