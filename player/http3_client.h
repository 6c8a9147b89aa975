/* The player's side of HTTP/3 over libxlink, sans-IO: endpoint, connection, session and requests of one player. The
 * driver (player/transport_quic.c, emulator/sim) owns the datagrams and the time. */
#ifndef PLAYER_HTTP3_CLIENT_H
#define PLAYER_HTTP3_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "player/transport.h"
#include "xlink/xlink.h"

typedef struct http3_client http3_client;

/* The credentials must outlive it. NULL with one phrase in error[PLAYER_ERROR_BYTES]. */
http3_client *http3_client_new(const player_transport_config *, const player_transport_callbacks *, xl_credentials *,
                               const xl_log *, uint64_t now, char *error);
/* Without a word to the server; NULL is fine. */
void http3_client_free(http3_client *);

/* How many of the configured paths the scheme uses, from the first. */
size_t http3_client_paths_used(const player_transport_config *);
/* Whether path i is among them and there from the beginning: no event adds it later. */
bool http3_client_opens_at_start(const player_transport_config *, size_t i);
/* How a path that an event adds gets the local address that it has then; false: it has none at present. Without this,
 * the address of the configuration. */
typedef bool http3_client_opener(void *user, size_t path, xl_addr *local);
void http3_client_set_opener(http3_client *, http3_client_opener *, void *user);
/* Opens path i of the configuration, `local` being the address that it really has; in order, from 0. */
bool http3_client_open_path(http3_client *, size_t i, const xl_addr *local, uint64_t now, char *error);

/* Datagrams are received and transmitted through this. */
xl_endpoint *http3_client_endpoint(http3_client *);
/* After datagrams came in, and before some are sent: runs timers that are due, handles events, writes what the streams
 * take, asks for the player's state. */
void http3_client_process(http3_client *, uint64_t now);
/* Absolute; XL_NEVER when it is over. */
uint64_t http3_client_next_timeout(const http3_client *);

bool http3_client_is_connected(const http3_client *);
bool http3_client_is_over(const http3_client *); /* closed() was called */
/* The driver found out that it cannot go on. */
void http3_client_fail(http3_client *, const char *message, uint64_t now);
/* Says goodbye to the server; what that takes is to be transmitted. */
void http3_client_close(http3_client *, uint64_t now);

/* The interface of path i has gone: the path is abandoned, unless it is the only one that is left. Comes back by
 * http3_client_add_path(). */
void http3_client_remove_path(http3_client *, size_t i, uint64_t now);
void http3_client_add_path(http3_client *, size_t i, uint64_t now);

/* As the members of player_transport_ops. */
bool http3_client_request(http3_client *, uint64_t id, uint64_t first, uint64_t last, uint64_t now);
void http3_client_path_stats(const http3_client *, player_path_stats *stats);
json_t *http3_client_summary(const http3_client *);

#endif
