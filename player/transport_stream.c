/* HTTP/1.1 over a Unix socket. A relay behind the socket carries each connection as one stream of another transport,
 * which the player does not know (docs/reference/stacks.md). A relay that gives up closes the connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "player/http1_client.h"

typedef struct {
    http1_transport of; /* must be first */
    struct sockaddr_un server;
} stream_transport;

static stream_transport *from_handle(player_transport *t) {
    return (stream_transport *)t;
}

static int open_socket(void *state, char *error) {
    const stream_transport *t = state;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_code(error, PLAYER_ERROR_BYTES, "no Unix socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&t->server, sizeof t->server) != 0) {
        snprintf(error, PLAYER_ERROR_BYTES, "%s", strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static player_transport *stream_create(const player_transport_config *config,
                                       const player_transport_callbacks *callbacks, uint64_t now, char *error) {
    static const http1_sockets sockets = {.open = open_socket};
    stream_transport *t = calloc(1, sizeof *t);
    if (!t)
        return error_null(error, PLAYER_ERROR_BYTES, "out of memory");
    t->server.sun_family = AF_UNIX;
    int len = snprintf(t->server.sun_path, sizeof t->server.sun_path, "%s", config->socket_file);
    if ((size_t)len >= sizeof t->server.sun_path) {
        snprintf(error, PLAYER_ERROR_BYTES, "the socket's name is longer than %zu bytes",
                 sizeof t->server.sun_path - 1);
        free(t);
        return NULL;
    }
    return http1_client_open(&t->of, config, callbacks, &sockets, now, error);
}

static json_t *stream_summary(player_transport *handle) {
    return json_pack("{s:i}", "connections", (int)from_handle(handle)->of.config->concurrency);
}

/* No path_stats: only the relay knows the paths. */
const player_transport_ops player_transport_stream = {
    .name = "stream",
    .uses_socket_file = true,
    .create = stream_create,
    .request = http1_client_request,
    .step = http1_client_step,
    .next_timeout = http1_client_next_timeout,
    .summary = stream_summary,
    .close = http1_client_close,
};
