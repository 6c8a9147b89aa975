/* HTTP/1.1 over stream sockets: what the transports tcp, mptcp and stream have in common. A stream socket carries one
 * request at a time, so `concurrency` requests take as many persistent connections. */
#pragma once

#include "player/transport.h"

typedef struct http1_client http1_client;

/* The operations of one kind of stream socket; `state` is the transport. */
typedef struct {
    /* Returns a non-blocking socket that is being connected, or -1 with a phrase in error[PLAYER_ERROR_BYTES]. The
     * socket of a refused connection may be returned too: step() reads its error. */
    int (*open)(void *state, char *error);
    /* Reads the kernel's statistics of a connected socket. NULL: the kernel has none. */
    void (*sample)(void *state, int fd);
} http1_sockets;

/* First member of a transport that uses the operations below. The transport must come from malloc(). */
typedef struct {
    http1_client *http;
    const player_transport_config *config;
} http1_transport;

/* Opens the sockets and returns the transport. On failure frees it, and returns NULL with a phrase in
 * error[PLAYER_ERROR_BYTES]. Copies callbacks and sockets. */
player_transport *http1_client_open(http1_transport *, const player_transport_config *,
                                    const player_transport_callbacks *, const http1_sockets *, uint64_t now,
                                    char *error);

/* See player_transport_ops. */
bool http1_client_request(player_transport *, uint64_t id, uint64_t first, uint64_t last, uint64_t now);
void http1_client_step(player_transport *, uint64_t now);
uint64_t http1_client_next_timeout(const player_transport *);
/* Samples and closes the sockets, and frees the transport. */
void http1_client_close(player_transport *, uint64_t now);

/* Samples every connected socket. */
void http1_client_sample(http1_client *);
