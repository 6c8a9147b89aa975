/* HTTP/1.1 over the kernel's TCP or MPTCP. Each connection is bound to the primary path's address. With MPTCP the
 * kernel adds subflows over the other addresses as configured by `ip mptcp endpoint`. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/net.h"
#include "base/tcp_stats.h"
#include "player/http1_client.h"

typedef struct {
    http1_transport of; /* must be first */
    bool mptcp;
    tcp_stats stats;
} tcp_transport;

static tcp_transport *from_handle(player_transport *t) {
    return (tcp_transport *)t;
}

/* Binds to the primary path. */
static bool bind_socket(const tcp_transport *t, int fd, char *error) {
    struct sockaddr_storage local;
    socklen_t len = net_to_sockaddr(&t->of.config->paths[0].local, &local);
    if (bind(fd, (struct sockaddr *)&local, len) == 0)
        return true;
    char text[64];
    return error_set(error, PLAYER_ERROR_BYTES, "cannot use local address %s of path %s: %s",
                     xl_addr_format(&t->of.config->paths[0].local, text, sizeof text), t->of.config->paths[0].name,
                     strerror(errno));
}

static int open_socket(void *state, char *error) {
    const tcp_transport *t = state;
    int domain = t->of.config->server.family == 6 ? AF_INET6 : AF_INET;
    int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, t->mptcp ? IPPROTO_MPTCP : 0);
    if (fd < 0)
        return error_code(error, PLAYER_ERROR_BYTES, "%s: %s%s", t->mptcp ? "no MPTCP socket" : "no socket",
                          strerror(errno),
                          t->mptcp ? " (the kernel needs CONFIG_MPTCP and sysctl net.mptcp.enabled=1)" : "");
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_storage remote;
    socklen_t len = net_to_sockaddr(&t->of.config->server, &remote);
    if (!bind_socket(t, fd, error)) {
        close(fd);
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&remote, len) != 0 && errno != EINPROGRESS) {
        snprintf(error, PLAYER_ERROR_BYTES, "%s", strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static void sample(void *state, int fd) {
    tcp_transport *t = state;
    tcp_stats_sample(&t->stats, fd, t->mptcp);
}

static player_transport *create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                uint64_t now, bool mptcp, char *error) {
    static const http1_sockets sockets = {.open = open_socket, .sample = sample};
    if (config->paths[0].local.family != config->server.family)
        return error_null(error, PLAYER_ERROR_BYTES, "path %s and the server are not of the same address family",
                          config->paths[0].name);
    tcp_transport *t = calloc(1, sizeof *t);
    if (!t)
        return error_null(error, PLAYER_ERROR_BYTES, "out of memory");
    t->mptcp = mptcp;
    return http1_client_open(&t->of, config, callbacks, &sockets, now, error);
}

static player_transport *tcp_create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                    uint64_t now, char *error) {
    return create(config, callbacks, now, false, error);
}

static player_transport *mptcp_create(const player_transport_config *config,
                                      const player_transport_callbacks *callbacks, uint64_t now, char *error) {
    return create(config, callbacks, now, true, error);
}

/* Returns the path with the flow's local address; 0: none has it. */
static size_t path_of(const tcp_transport *t, const tcp_flow *flow) {
    for (size_t i = 0; i < t->of.config->path_count; i++)
        if (net_same_ip(&t->of.config->paths[i].local, &flow->local))
            return i;
    return 0;
}

static void tcp_path_stats(player_transport *handle, player_path_stats *stats) {
    tcp_transport *t = from_handle(handle);
    http1_client_sample(t->of.http);
    memset(stats, 0, t->of.config->path_count * sizeof *stats);
    for (size_t i = 0; i < t->stats.count; i++) {
        const tcp_flow *flow = &t->stats.flows[i];
        player_path_stats *path = &stats[path_of(t, flow)];
        path->bytes_sent += flow->bytes_sent;
        path->bytes_received += flow->bytes_received;
        path->srtt_us = flow->srtt_us > 0 ? flow->srtt_us : path->srtt_us;
    }
}

static json_t *tcp_summary(player_transport *handle) {
    tcp_transport *t = from_handle(handle);
    http1_client_sample(t->of.http);
    json_t *flows = json_array();
    for (size_t i = 0; i < t->stats.count; i++) {
        const tcp_flow *flow = &t->stats.flows[i];
        char local[64], remote[64];
        json_array_append_new(flows, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "path",
                                               t->of.config->paths[path_of(t, flow)].name, "local",
                                               xl_addr_format(&flow->local, local, sizeof local), "remote",
                                               xl_addr_format(&flow->remote, remote, sizeof remote), "bytes_sent",
                                               (json_int_t)flow->bytes_sent, "bytes_received",
                                               (json_int_t)flow->bytes_received, "srtt_us", (json_int_t)flow->srtt_us));
    }
    json_t *out =
        json_pack("{s:i, s:o}", "connections", (int)t->of.config->concurrency, t->mptcp ? "subflows" : "flows", flows);
    if (t->mptcp) {
        json_object_set_new(out, "subflow_count", json_integer((json_int_t)t->stats.count));
        json_object_set_new(out, "fell_back_to_tcp", json_boolean(t->stats.fallbacks > 0));
    }
    return out;
}

const player_transport_ops player_transport_tcp = {
    .name = "tcp",
    .create = tcp_create,
    .request = http1_client_request,
    .step = http1_client_step,
    .next_timeout = http1_client_next_timeout,
    .path_stats = tcp_path_stats,
    .summary = tcp_summary,
    .close = http1_client_close,
};

const player_transport_ops player_transport_mptcp = {
    .name = "mptcp",
    .create = mptcp_create,
    .request = http1_client_request,
    .step = http1_client_step,
    .next_timeout = http1_client_next_timeout,
    .path_stats = tcp_path_stats,
    .summary = tcp_summary,
    .close = http1_client_close,
};
