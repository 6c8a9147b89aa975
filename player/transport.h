/* What the player asks of a transport: byte ranges of one resource come in, nothing else of the transport is seen.
 *
 * A transport owns its sockets and protocol state. The player's driver (player/main.c) owns the epoll set and the
 * clock:
 *
 *     ops->create()                     opens sockets, watch() names the descriptors to wait for
 *     loop:
 *         ops->step(now)                receives all there is, runs due timers, sends all that may go; callbacks
 *                                       happen here
 *         ops->request()                for each chunk that the player now wants, then step() once more
 *         sleep until a watched descriptor is ready or ops->next_timeout()
 *     ops->summary(), ops->path_stats()
 *     ops->close()
 *
 * Callbacks are called from within step() only, never from create() or request(), and must not call back into the
 * transport. Times are microseconds of CLOCK_MONOTONIC. Adding a transport: one file that
 * defines a `const player_transport_ops player_transport_NAME`. */
#ifndef PLAYER_TRANSPORT_H
#define PLAYER_TRANSPORT_H

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

/* One local address of the player: an interface, a radio. */
typedef struct {
    char name[PLAYER_NAME_BYTES];
    xl_addr local; /* port 0: the kernel chooses */
    xl_technology technology;
} player_path;

/* Valid until create() returns; strings and arrays that the transport needs longer it copies. */
typedef struct {
    xl_addr server;           /* family 0 where socket_file is set */
    const char *socket_file;  /* of ops->uses_socket_file: the Unix socket to connect to; NULL elsewhere */
    const player_path *paths; /* paths[0] is the primary path */
    size_t path_count;
    const char *target;    /* "/synthetic/20000000": path of the one resource that all requests are for */
    const char *authority; /* Host and :authority: "100.64.0.1:4433", or "localhost" with a socket_file */
    unsigned concurrency;  /* the largest number of requests open at a time, >= 1 */

    const quic_settings *settings; /* name: of quic_scheme_name(), or NULL unless ops->has_schemes */
    const path_event *path_events; /* by time; their names are those of paths */
    size_t path_event_count;
    random_seed seed;
    uint8_t random_key[XL_RANDOM_KEY_BYTES]; /* of random_key_make(), or of the simulator's job */
    bool random_packet_numbers;              /* see xl_config */
    bool insecure;                           /* do not verify the server's certificate */
    const char *ca_file;                     /* PEM, or NULL */
    const char *session_file;                /* QUIC: where the TLS session is kept, or NULL */
    bool early_data;                         /* QUIC: requests go as 0-RTT data where a session allows it */
    bool keeps_session;                      /* the simulator's: sessions are kept, without a file */
    const char *qlog_dir;                    /* or NULL */
    const char *keylog_file;                 /* appended to, or NULL */
    bool null_crypto;                        /* simulation only, see xl_config */
    void *network;                           /* the simulator's, of its own transport; NULL elsewhere */
    /* The simulator's, in place of xl_endpoint_new(); NULL elsewhere. */
    xl_endpoint *(*new_endpoint)(void *network, const xl_config *, uint64_t now, int *error);
} player_transport_config;

typedef struct {
    void *user;
    /* Wait for `events` (EPOLLIN | EPOLLOUT, level triggered) on fd; replaces what was asked before; 0 ends the watch,
     * which must happen before the descriptor is closed. The one callback that create() may use too. */
    void (*watch)(void *user, int fd, uint32_t events);
    /* Requests may be made from now on. Once. */
    void (*connected)(void *user, uint64_t now);
    /* Body bytes of request `id`, in order without gaps; offset is relative to the first byte of the requested range.
     */
    void (*data)(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now);
    /* All bytes of the range were handed over; `id` is forgotten. */
    void (*done)(void *user, uint64_t id, uint64_t now);
    /* The server refused, or broke the protocol in this request: one phrase, e.g. "status 404". The player gives up. */
    void (*failed)(void *user, uint64_t id, const char *message, uint64_t now);
    /* Facts about paths; indices into config.paths. state: a word of xl_path_state_name(), "tried" where the transport
     * begins to connect again, or another one of its own. */
    void (*path)(void *user, size_t path, const char *state, uint64_t now);
    void (*migrated)(void *user, size_t from, size_t to, uint64_t now);
    /* The player's state, for the QoE signal of a transport that has one. False: it is not newer than the last. */
    bool (*qoe)(void *user, uint64_t now, xl_qoe *);
    /* The transport is over: nothing was reached (before connected()) or the connection died (after). At most once; no
     * callback follows. message: one phrase, e.g. "connection refused". */
    void (*closed)(void *user, const char *message, uint64_t now);
} player_transport_callbacks;

typedef struct {
    uint64_t bytes_sent, bytes_received; /* as the transport counts them: UDP payload, TCP segments' payload */
    uint64_t srtt_us;                    /* 0: not known */
} player_path_stats;

/* Each transport defines its own `struct …`, whose first member is not prescribed; this type is never complete. */
typedef struct player_transport player_transport;

typedef struct {
    const char *name;      /* value of --transport */
    bool has_schemes;      /* it takes --scheme and what the schemes set */
    bool uses_socket_file; /* --server names a Unix socket, unix:FILE */

    /* Starts connecting. NULL on what cannot work at all (no such local address, no kernel support), with one phrase in
     * error[PLAYER_ERROR_BYTES]. The callbacks are copied. */
    player_transport *(*create)(const player_transport_config *, const player_transport_callbacks *, uint64_t now,
                                char *error);
    /* Asks for bytes first..last (inclusive). `id` is the caller's, unique among all requests. False: not now (not
     * connected, or `concurrency` requests are open). */
    bool (*request)(player_transport *, uint64_t id, uint64_t first, uint64_t last, uint64_t now);
    void (*step)(player_transport *, uint64_t now);
    uint64_t (*next_timeout)(const player_transport *); /* absolute; XL_NEVER for none */
    /* stats[i] of config.paths[i], for all path_count of them. Works after closed() too. NULL: the transport does not
     * know its paths, nor when its handshake was done; the summary has null there. */
    void (*path_stats)(player_transport *, player_path_stats *stats);
    /* Further facts for the summary as a new JSON object (subflows, multipath negotiated, …), placed at its "transport"
     * member. NULL: none. Works after closed() too. */
    json_t *(*summary)(player_transport *);
    /* Says goodbye to the server as far as that goes without waiting, ends all watches and frees everything. */
    void (*close)(player_transport *, uint64_t now);
} player_transport_ops;

/* By name; NULL when unknown. */
const player_transport_ops *player_transport_find(const char *name);

/* All of them, ends with NULL: the build makes the table of what the files of this folder define as
 * `const player_transport_ops player_transport_NAME`. */
extern const player_transport_ops *const player_transports[];

#endif
