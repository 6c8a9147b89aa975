/* Interface between the player and its transports. The player requests byte ranges of one resource.
 *
 * A transport owns its sockets and protocol state. The player's driver (player/main.c) owns the epoll set and the
 * clock:
 *
 *     ops->create()                     opens sockets, watch() names the descriptors to wait for
 *     loop:
 *         ops->step(now)                receives, runs due timers, sends; calls the callbacks
 *         ops->request()                for each chunk that the player now wants, then step() once more
 *         sleep until a watched descriptor is ready or ops->next_timeout()
 *     ops->summary(), ops->path_stats()
 *     ops->close()
 *
 * Only step() calls the callbacks, except watch(). They must not call back into the transport. Times are microseconds
 * of CLOCK_MONOTONIC. A further transport is one file that defines a
 * `const player_transport_ops player_transport_NAME`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/random_key.h"
#include "schemes/path_grammars.h"
#include "schemes/quic_settings.h"
#include "xlink/xlink.h"

#define PLAYER_MAX_PATHS   XL_MAX_PATHS
#define PLAYER_NAME_BYTES  32
#define PLAYER_ERROR_BYTES 256

/* A path: one local address of the player. */
typedef struct {
    char name[PLAYER_NAME_BYTES];
    xl_addr local; /* port 0: the kernel chooses */
    xl_technology technology;
} player_path;

/* Outlives the transport. */
typedef struct {
    xl_addr server;           /* family 0 if socket_file is set */
    const char *socket_file;  /* Unix socket to connect to, if ops->uses_socket_file; else NULL */
    const player_path *paths; /* paths[0] is the primary path */
    size_t path_count;
    const char *target;    /* path of the resource of all requests, for example "/synthetic/20000000" */
    const char *authority; /* Host and :authority: "100.64.0.1:4433", or "localhost" with a socket_file */
    unsigned concurrency;  /* largest number of open requests, >= 1 */

    const quic_settings *settings; /* name: the scheme's; NULL without ops->has_schemes */
    const path_event *path_events; /* sorted by time; each names one of paths */
    size_t path_event_count;
    random_seed seed;
    uint8_t random_key[XL_RANDOM_KEY_BYTES]; /* from random_key_make(), or from the simulator's job */
    bool random_packet_numbers;              /* see xl_config */
    bool insecure;                           /* do not verify the server's certificate */
    const char *ca_file;                     /* PEM, or NULL */
    const char *session_file;                /* QUIC: file that keeps the TLS session, or NULL */
    bool early_data;                         /* QUIC: send requests as 0-RTT data if the session allows it */
    bool keeps_session;                      /* simulation only: sessions are kept without a file */
    const char *qlog_dir;                    /* or NULL */
    const char *keylog_file;                 /* appended to, or NULL */
    bool null_crypto;                        /* simulation only, see xl_config */
    void *network;                           /* simulation only, for its own transport; else NULL */
    /* Simulation only, instead of xl_endpoint_new(); else NULL. */
    xl_endpoint *(*new_endpoint)(void *network, const xl_config *, uint64_t now, int *error);
} player_transport_config;

typedef struct {
    void *user;
    /* Waits for `events` (EPOLLIN | EPOLLOUT, level triggered) on fd, instead of earlier ones; 0 ends the watch, which
     * must happen before the descriptor is closed. Every operation may call it. */
    void (*watch)(void *user, int fd, uint32_t events);
    /* Requests are possible from now on. Called once. */
    void (*connected)(void *user, uint64_t now);
    /* Body bytes of request `id`, in order without gaps; offset is relative to the first byte of the requested range.
     */
    void (*data)(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now);
    /* All bytes of the range have been passed to data(); `id` is no longer used. */
    void (*done)(void *user, uint64_t id, uint64_t now);
    /* The server refused this request or broke the protocol in it, which ends the play. message: e.g. "status 404". */
    void (*failed)(void *user, uint64_t id, const char *message, uint64_t now);
    /* State changes of paths; indices into config.paths. state: from xl_path_state_name(), "tried" if the transport
     * connects again on this path, or another word of the transport. */
    void (*path)(void *user, size_t path, const char *state, uint64_t now);
    void (*migrated)(void *user, size_t from, size_t to, uint64_t now);
    /* Writes the player's state, for the QoE signal. False: it has not changed since the last call. */
    bool (*qoe)(void *user, uint64_t now, xl_qoe *);
    /* The transport is over: it could not connect (before connected()) or the connection ended (after). Called at most
     * once, as the last callback except watch(). message: one phrase, e.g. "connection refused". */
    void (*closed)(void *user, const char *message, uint64_t now);
} player_transport_callbacks;

typedef struct {
    uint64_t bytes_sent, bytes_received; /* QUIC: UDP payload; TCP: payload of segments */
    uint64_t srtt_us;                    /* 0: unknown */
} player_path_stats;

/* Opaque: each transport casts it to its own struct. */
typedef struct player_transport player_transport;

typedef struct {
    const char *name;      /* value of --transport */
    bool has_schemes;      /* it takes --scheme and the settings of schemes */
    bool uses_socket_file; /* --server names a Unix socket, unix:FILE */

    /* Starts to connect. Copies the callbacks. Returns NULL with a phrase in error[PLAYER_ERROR_BYTES] if the transport
     * cannot work here (no such local address, no kernel support). */
    player_transport *(*create)(const player_transport_config *, const player_transport_callbacks *, uint64_t now,
                                char *error);
    /* Requests bytes first..last (inclusive). `id` is chosen by the caller, unique among all requests. False: not
     * possible now (never connected, or `concurrency` requests are open). */
    bool (*request)(player_transport *, uint64_t id, uint64_t first, uint64_t last, uint64_t now);
    void (*step)(player_transport *, uint64_t now);
    uint64_t (*next_timeout)(const player_transport *); /* absolute; XL_NEVER for none */
    /* Writes stats[i] for every config.paths[i], also after closed(). NULL: the transport knows neither its paths nor
     * when its handshake was done; the summary has null for both. */
    void (*path_stats)(player_transport *, player_path_stats *stats);
    /* Returns a new JSON object for the summary's "transport" member (subflows, multipath negotiated, …), also after
     * closed(). NULL: none. */
    json_t *(*summary)(player_transport *);
    /* Closes the connection without waiting, ends all watches and frees the transport. */
    void (*close)(player_transport *, uint64_t now);
} player_transport_ops;

/* Returns the transport of this name; NULL: unknown. */
const player_transport_ops *player_transport_find(const char *name);

/* All transports, then NULL. The build makes this table of all `const player_transport_ops player_transport_NAME` in
 * this folder. */
extern const player_transport_ops *const player_transports[];
