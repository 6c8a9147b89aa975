/* What the files of the player's HTTP/3 client share: http3_client.c has its connections, http3_requests.c what is
 * asked for over them, http3_paths.c their paths. */
#ifndef PLAYER_HTTP3_CLIENT_INTERNAL_H
#define PLAYER_HTTP3_CLIENT_INTERNAL_H

#include "http/http3.h"
#include "player/http3_client.h"

#define MAX_TARGET_BYTES 1024
#define ATTEMPTS_MAX     (2 * PLAYER_MAX_PATHS)

typedef struct {
    bool open;
    bool waits;          /* for a connection: the one that carried it died */
    uint64_t id, stream; /* the player's name for it, and HTTP/3's */
    uint64_t first, last, received;
    uint64_t asked_from; /* the first byte that this connection's request names */
    /* The server has ignored the range and sends all there is (RFC 9110 section 14.2). */
    bool is_whole; /* more than what was asked for follows */
    uint64_t skip; /* bytes before it, still to be passed over */
} client_request;

/* One attempt to connect, on a path of its own. The first whose handshake completes is the client's connection, the
 * others are closed. With racing (quic_settings.race_us) attempts follow each other as those of Happy Eyeballs do (RFC
 * 8305), between paths instead of addresses: QUIC itself keeps a handshake on one path (RFC 9000 section 9). And an
 * application whose connection is not there, or not confirmed, for quic_settings.reconnect_us tries the next interface;
 * so it does when its connection dies. What was asked for is then asked for again, from the first missing byte. */
typedef struct {
    xl_connection *connection; /* NULL: a free slot */
    h3_session *h3;
    size_t path; /* as configured */
    bool is_alive, is_left;
    bool has_paths; /* the further paths are registered with it */
} attempt;

struct http3_client {
    player_transport_callbacks cb;
    char target[MAX_TARGET_BYTES + 1], authority[96];
    size_t path_count;
    player_path paths[PLAYER_MAX_PATHS]; /* with the address that each was opened with */
    bool is_opened[PLAYER_MAX_PATHS];
    xl_addr server;
    path_event events[PATH_EVENTS_MAX];
    size_t event_count, event_next;
    uint64_t start_us;
    http3_client_opener *opener;
    void *opener_user;
    xl_endpoint *endpoint;
    attempt *in_use;           /* NULL: not connected, or not any more */
    xl_connection *connection; /* that of in_use; before there is one the first attempt's, then the last one's */
    h3_session *h3;
    attempt attempts[ATTEMPTS_MAX];
    size_t attempts_begun, attempts_alive, last_path; /* last_path: of the newest attempt */
    bool uses_all;                                    /* paths; else only the one that it is connected by */
    uint64_t race_us, race_at;                        /* the next attempt starts then; XL_NEVER: there is none */
    quic_reconnect reconnect;
    uint64_t leave_us, heard_at;     /* heard_at: the latest byte of a response, or the first request after it */
    uint64_t reconnect_us, again_at; /* a connection that is not confirmed then gets another attempt; XL_NEVER: no */
    char why[PLAYER_ERROR_BYTES];    /* the latest attempt failed */
    player_path_stats past_stats[PLAYER_MAX_PATHS]; /* of connections that were in use before this one */
    uint64_t past_stream_bytes;
    bool keeps_session;
    bool connected, over; /* connected: once */
    bool is_going;        /* the server sent GOAWAY on the connection in use */
    uint64_t now;         /* of the running call, for callbacks */
    unsigned count;
    client_request requests[];
};

/* ---- http3_requests.c ---- */

h3_callbacks http3_client_callbacks(http3_client *); /* of a session: what becomes of the requests */
bool http3_client_is_asking(const http3_client *);   /* something is asked for and not there yet */
/* Requests that their connection left behind. */
void http3_client_submit_again(http3_client *);

/* ---- http3_paths.c ---- */

/* Index of the transport's path among the configured ones, or path_count. A path that was opened anew has another index
 * in the transport and the same local address. */
size_t http3_client_to_config(const http3_client *, int index);
/* Adds those of the connection. */
void http3_client_add_path_stats(const http3_client *, player_path_stats *);
/* When the next configured event of a path is due, and what it does. */
uint64_t http3_client_next_event(const http3_client *);
void http3_client_apply_event(http3_client *, const path_event *);

#endif
