/* Shared by the files of the player's HTTP/3 client: http3_client.c (connections), http3_requests.c (requests) and
 * http3_paths.c (paths). */
#pragma once

#include "http/http3.h"
#include "player/http3_client.h"

#define MAX_TARGET_BYTES 1024
#define ATTEMPTS_MAX     (2 * PLAYER_MAX_PATHS)

typedef struct {
    bool open;
    bool waits;          /* for the next connection, because its own was left or rejected it */
    uint64_t id, stream; /* the player's ID, and the stream ID */
    uint64_t first, last, received;
    uint64_t asked_from; /* first byte of the range requested on this connection */
    /* For a response with status 200: the server ignored the range (RFC 9110 section 14.2). */
    bool is_whole; /* bytes after the range may follow */
    uint64_t skip; /* bytes before the range that are still to be skipped */
} client_request;

/* One attempt to connect, on one path. The first attempt whose handshake completes becomes the client's connection; the
 * others are closed. Attempts start:
 * - with racing (quic_settings.race_us) one after the other on the next path, as in Happy Eyeballs (RFC 8305), because
 *   QUIC keeps a handshake on one path (RFC 9000 section 9);
 * - with quic_settings.reconnect, if no connection is confirmed within reconnect_us, or if the connection ends and a
 *   request is open or is made later.
 * A new connection requests incomplete ranges again, from the first missing byte. */
typedef struct {
    xl_connection *connection; /* NULL: free slot */
    h3_session *h3;
    size_t path;            /* configured index */
    bool is_alive, is_left; /* is_alive: no XL_EVENT_CLOSED yet; is_left: closed by the client */
    bool has_paths;         /* the other paths have been, or will be, added */
} attempt;

struct http3_client {
    player_transport_callbacks cb;
    const player_transport_config *config;
    player_path paths[PLAYER_MAX_PATHS]; /* local: the address that it was opened with */
    bool is_opened[PLAYER_MAX_PATHS];
    size_t event_next; /* index of the next path event */
    uint64_t start_us;
    http3_client_opener *opener;
    void *opener_user;
    xl_endpoint *endpoint;
    attempt *in_use;           /* NULL: not connected, or left */
    xl_connection *connection; /* of in_use; NULL in_use: of the last one, or of the first attempt if there was none */
    h3_session *h3;
    attempt attempts[ATTEMPTS_MAX];
    size_t attempts_begun, attempts_alive, last_path; /* last_path: path of the newest attempt */
    bool uses_all;                                    /* the connection uses all paths, not only that of its attempt */
    uint64_t race_at;                                 /* start of the race's next attempt; XL_NEVER: none */
    uint64_t heard_at;            /* time of the latest response byte, or of the first request after it */
    uint64_t again_at;            /* next attempt, if no connection is confirmed; XL_NEVER: none */
    char why[PLAYER_ERROR_BYTES]; /* why the latest attempt failed */
    player_path_stats past_stats[PLAYER_MAX_PATHS]; /* sums over the connections that were in use before this one */
    uint64_t past_stream_bytes;
    bool keeps_session;
    bool connected, over; /* connected: at least once; over: closed() was called */
    bool is_going;        /* the server sent GOAWAY on the connection in use */
    uint64_t now;         /* time of the current call, for callbacks */
    unsigned count;
    client_request requests[];
};

/* ---- http3_requests.c ---- */

h3_callbacks http3_client_callbacks(http3_client *); /* callbacks of a session */
bool http3_client_is_asking(const http3_client *);   /* whether a request is open */
/* Submits waiting requests on the connection in use. */
void http3_client_submit_again(http3_client *);

/* ---- http3_paths.c ---- */

/* Returns the configured index of the transport's path, by its local address, or path_count. A path that was opened
 * anew has a new index in the transport. */
size_t http3_client_to_config(const http3_client *, int index);
/* Adds the current connection's statistics to `stats`; srtt_us is replaced. */
void http3_client_add_path_stats(const http3_client *, player_path_stats *);
/* Time of the next path event; XL_NEVER: none, or not connected. */
uint64_t http3_client_next_event(const http3_client *);
void http3_client_apply_event(http3_client *, const path_event *);
