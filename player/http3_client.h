/* The player's side of HTTP/3 over libxlink, sans-IO: endpoint, connection, session and requests of one player. The
 * driver (player/transport_quic.c, emulator/sim) owns the datagrams and the time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "player/transport.h"
#include "xlink/xlink.h"

typedef struct http3_client http3_client;

/* The credentials must outlive the client. Returns NULL with a phrase in error[PLAYER_ERROR_BYTES] on failure. */
http3_client *http3_client_new(const player_transport_config *, const player_transport_callbacks *, xl_credentials *,
                               const xl_log *, uint64_t now, char *error);
/* Sends nothing to the server. Accepts NULL. */
void http3_client_free(http3_client *);

/* Whether the scheme uses path i from the start, i.e. no path event adds it later. */
bool http3_client_opens_at_start(const player_transport_config *, size_t i);
/* Writes the current local address of a path that is opened after the start; false: it has none at present. Without
 * an opener, the configured address is used. */
typedef bool http3_client_opener(void *user, size_t path, xl_addr *local);
void http3_client_set_opener(http3_client *, http3_client_opener *, void *user);
/* Opens configured path i with its actual address `local`. Call it in ascending order, from 0. False with a phrase. */
bool http3_client_open_path(http3_client *, size_t i, const xl_addr *local, uint64_t now, char *error);

/* The endpoint that receives and transmits the datagrams. */
xl_endpoint *http3_client_endpoint(http3_client *);
/* Runs due timers, handles events, writes to the streams and sets the QoE signal. Call it after datagrams are received
 * and before datagrams are transmitted. */
void http3_client_process(http3_client *, uint64_t now);
/* Absolute time; XL_NEVER after closed(). */
uint64_t http3_client_next_timeout(const http3_client *);

bool http3_client_is_connected(const http3_client *);
bool http3_client_is_over(const http3_client *); /* closed() was called */
/* Ends the client with closed(message), for an error that the driver detects. */
void http3_client_fail(http3_client *, const char *message, uint64_t now);
/* Closes all connections. The driver then transmits the CONNECTION_CLOSE frames. */
void http3_client_close(http3_client *, uint64_t now);

/* Abandons path i, whose interface is gone, unless no other path is usable. http3_client_add_path() opens it anew. */
void http3_client_remove_path(http3_client *, size_t i, uint64_t now);
void http3_client_add_path(http3_client *, size_t i, uint64_t now);

/* See player_transport_ops. */
bool http3_client_request(http3_client *, uint64_t id, uint64_t first, uint64_t last, uint64_t now);
void http3_client_path_stats(const http3_client *, player_path_stats *stats);
json_t *http3_client_summary(const http3_client *);
