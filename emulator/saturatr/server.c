#include "emulator/saturatr/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/jsonl.h"
#include "base/net.h"
#include "base/numbers.h"
#include "base/wait.h"
#include "emulator/saturatr/server_session.h"

#define PENDING_MOST 8u
#define PENDING_US   5000000u /* time to prove possession of the token */
#define LISTEN_TRIES 20       /* tries to find a port that is free for TCP and UDP */
#define IDLE_US      500000u

/* A connection whose peer has not yet proved that it has the token. */
typedef struct {
    sat_control control;
    sat_nonces nonces;
    uint64_t deadline_us;
} pending_client;

typedef struct {
    const sat_options *options;
    int listen_fd;
    sat_socket data, ack;
    xl_addr address, ack_address;
    pending_client pending[PENDING_MOST];
    sat_session session;
    uint64_t recordings;
} sat_server;

/* Listens on *at, which receives the port that the kernel chose for port 0. */
static bool listen_tcp(sat_server *server, xl_addr *at, char *error) {
    char text[SAT_ADDRESS_TEXT];
    struct sockaddr_storage name;
    socklen_t length = net_to_sockaddr(at, &name);
    int one = 1;
    int zero = 0;
    const int fd = server->listen_fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (at->family == 6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, length) != 0 || listen(fd, PENDING_MOST) != 0 ||
        getsockname(fd, (struct sockaddr *)&name, &length) != 0)
        return error_set(error, SAT_ERROR_SIZE, "cannot listen on %s: %s", xl_addr_format(at, text, sizeof text),
                         strerror(errno));
    return net_from_sockaddr((const struct sockaddr *)&name, at);
}

/* Opens TCP and UDP on one port. A port that the kernel chooses may be free for one of them only. */
static bool open_ports(sat_server *server, char *error) {
    bool any = server->options->server.port == 0;
    for (int i = 0; i < (any ? LISTEN_TRIES : 1); i++) {
        server->address = server->options->server;
        if (!listen_tcp(server, &server->address, error))
            return false;
        if (sat_socket_open(&server->data, &server->address, NULL, error))
            return true;
        descriptor_close(&server->listen_fd);
    }
    return false;
}

static bool open_server(sat_server *server, char *error) {
    server->ack_address = server->options->server;
    server->ack_address.port = server->options->ack_port;
    if (!open_ports(server, error) || !sat_socket_open(&server->ack, &server->ack_address, NULL, error))
        return false;
    server->session.data_socket = &server->data;
    server->session.ack_socket = &server->ack;
    return true;
}

static void announce(const sat_server *server) {
    char text[SAT_ADDRESS_TEXT];
    jsonl_announce(NULL,
                   json_pack("{s:s, s:i, s:s}", "address", xl_addr_format(&server->address, text, sizeof text),
                             "ack_port", server->ack_address.port, "token", server->options->token),
                   0);
}

static void accept_one(sat_server *server) {
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    pending_client *place = &server->pending[0]; /* the oldest is replaced */
    for (size_t i = 0; i < PENDING_MOST; i++) {
        pending_client *p = &server->pending[i];
        if (p->control.fd < 0 || (place->control.fd >= 0 && p->deadline_us < place->deadline_us))
            place = p;
    }
    sat_control_close(&place->control);
    int one = 1;
    int seconds = 15; /* so that a vanished client is noticed */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    sat_control_init(&place->control, fd);
    place->deadline_us = clock_us() + PENDING_US;
    char hex[2 * SAT_NONCE_BYTES + 1];
    if (!sat_auth_random(place->nonces.server, SAT_NONCE_BYTES)) {
        sat_control_close(&place->control);
        return;
    }
    hex_write(place->nonces.server, SAT_NONCE_BYTES, hex);
    if (!sat_control_write(&place->control, json_pack("{s:i, s:s}", "saturatr", SAT_PROTOCOL, "nonce", hex)))
        sat_control_close(&place->control);
}

static void refuse(sat_control *control, const char *sentence) {
    sat_control_write(control, json_pack("{s:s}", "error", sentence));
    sat_control_close(control);
}

static bool proves(const sat_server *server, pending_client *p, const json_t *line) {
    uint8_t given[SAT_PROOF_BYTES];
    uint8_t wanted[SAT_PROOF_BYTES];
    return hex_read(json_string_value(json_object_get(line, "nonce")), p->nonces.client, SAT_NONCE_BYTES) &&
           hex_read(json_string_value(json_object_get(line, "proof")), given, SAT_PROOF_BYTES) &&
           sat_auth_proof(server->options->token, SAT_CLIENT, &p->nonces, wanted) &&
           sat_auth_same(given, wanted, SAT_PROOF_BYTES);
}

static json_t *greeting(const sat_server *server, const sat_nonces *nonces) {
    uint8_t proof[SAT_PROOF_BYTES];
    char hex[2 * SAT_PROOF_BYTES + 1];
    struct utsname host;
    if (uname(&host) != 0 || !sat_auth_proof(server->options->token, SAT_SERVER, nonces, proof))
        return NULL;
    hex_write(proof, SAT_PROOF_BYTES, hex);
    return json_pack("{s:s, s:i, s:i, s:s, s:s}", "proof", hex, "port", server->address.port, "ack_port",
                     server->ack_address.port, "host", host.nodename, "kernel", host.release);
}

static void on_pending(sat_server *server, pending_client *p) {
    json_t *line = NULL;
    sat_line found = sat_control_read(&p->control, &line);
    if (found == SAT_LINE_NONE)
        return;
    if (found == SAT_LINE_BAD) {
        sat_control_close(&p->control);
        return;
    }
    char error[SAT_ERROR_SIZE];
    if (!proves(server, p, line))
        refuse(&p->control, "the token is not the server's");
    else if (server->session.stage != SAT_IDLE)
        refuse(&p->control, "the server is busy with another recording");
    else if (!sat_session_begin(&server->session, server->options, &p->control, &p->nonces, line, error))
        refuse(&p->control, error);
    else if (!sat_control_write(&server->session.control, greeting(server, &p->nonces)))
        server->session.stage = SAT_OVER;
    json_decref(line);
}

static void ignore(void *user, const sat_datagram *datagram) {
    (void)user;
    (void)datagram;
}

static void receive(sat_server *server, sat_socket *socket) {
    if (server->session.stage == SAT_IDLE)
        sat_socket_receive(socket, ignore, NULL); /* there is no session */
    else
        sat_peer_receive(&server->session.peer, socket);
}

static void end_session(sat_server *server) {
    const sat_session *session = &server->session;
    jsonl_print(json_pack("{s:s, s:I, s:I}", "event", "recording_ended", "paths", (json_int_t)session->peer.path_count,
                          "strays", (json_int_t)session->peer.strays),
                JSON_COMPACT);
    sat_session_end(&server->session);
    server->recordings++;
}

static size_t fill_polls(sat_server *server, struct pollfd *polls) {
    size_t n = 0;
    polls[n++] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
    polls[n++] = (struct pollfd){.fd = server->data.fd, .events = POLLIN};
    polls[n++] = (struct pollfd){.fd = server->ack.fd, .events = POLLIN};
    for (size_t i = 0; i < PENDING_MOST; i++)
        polls[n++] = (struct pollfd){.fd = server->pending[i].control.fd, .events = POLLIN};
    bool pushing = server->session.stage == SAT_HANDOVER;
    polls[n++] = (struct pollfd){.fd = server->session.stage == SAT_IDLE ? -1 : server->session.control.fd,
                                 .events = (short)(pushing ? POLLIN | POLLOUT : POLLIN)};
    return n;
}

static uint64_t serve_session(sat_server *server, short revents, uint64_t now) {
    sat_session *session = &server->session;
    if (session->stage == SAT_IDLE)
        return IDLE_US;
    if (revents & (POLLIN | POLLHUP | POLLERR))
        sat_session_on_readable(session);
    if (revents & POLLOUT)
        sat_session_on_writable(session);
    sat_session_on_time(session, now);
    if (session->peer.fatal != 0) {
        char error[SAT_ERROR_SIZE];
        snprintf(error, sizeof error, "the server's device does not take IP packets of %zu bytes; give --packet-bytes",
                 session->peer.packet_bytes);
        refuse(&session->control, error);
        session->stage = SAT_OVER;
    }
    if (session->stage == SAT_OVER) {
        end_session(server);
        return 0;
    }
    uint64_t next = session->stage == SAT_RUNNING ? sat_peer_send(&session->peer) : SAT_NEVER;
    return next <= now ? 0 : next - now < IDLE_US ? next - now : IDLE_US;
}

static uint64_t turn(sat_server *server, uint64_t wait_us, const sigset_t *mask) {
    struct pollfd polls[4 + PENDING_MOST];
    size_t n = fill_polls(server, polls);
    struct timespec wait = {.tv_sec = (time_t)(wait_us / 1000000), .tv_nsec = (long)(wait_us % 1000000) * 1000};
    if (ppoll(polls, n, &wait, mask) < 0)
        memset(polls, 0, sizeof polls);
    wait_handle_signals(mask);
    uint64_t now = clock_us();
    if (polls[1].revents != 0)
        receive(server, &server->data);
    if (polls[2].revents != 0)
        receive(server, &server->ack);
    for (size_t i = 0; i < PENDING_MOST; i++) {
        pending_client *p = &server->pending[i];
        if (p->control.fd >= 0 && polls[3 + i].revents != 0)
            on_pending(server, p);
        if (p->control.fd >= 0 && now >= p->deadline_us)
            sat_control_close(&p->control);
    }
    if (polls[0].revents != 0)
        accept_one(server);
    return serve_session(server, polls[3 + PENDING_MOST].revents, now);
}

bool sat_server_run(const sat_options *options, char *error) {
    static sat_server server;
    sigset_t mask;
    memset(&server, 0, sizeof server);
    server.options = options;
    server.listen_fd = server.data.fd = server.ack.fd = server.session.control.fd = -1;
    for (size_t i = 0; i < PENDING_MOST; i++)
        server.pending[i].control.fd = -1;
    sigemptyset(&mask);
    bool ok = open_server(&server, error);
    if (ok) {
        announce(&server);
        uint64_t wait_us = IDLE_US;
        while (!wait_is_ended && !(options->once && server.recordings > 0))
            wait_us = turn(&server, wait_us, &mask);
        if (server.session.stage != SAT_IDLE)
            sat_session_end(&server.session);
    }
    for (size_t i = 0; i < PENDING_MOST; i++)
        sat_control_close(&server.pending[i].control);
    sat_socket_close(&server.data);
    sat_socket_close(&server.ack);
    descriptor_close(&server.listen_fd);
    return ok;
}
