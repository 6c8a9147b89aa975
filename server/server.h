/* xlink-server: what its services (HTTP/1.1 over TCP and MPTCP, HTTP/3 over QUIC) share.
 *
 * One thread, one epoll set. A service opens its sockets in start(), registers them with the loop, and is called when
 * one is ready and when its next timeout has come. What to answer to a request is decided once for all HTTP versions:
 * catalogue_respond() in server/catalogue.h. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/random_key.h"
#include "schemes/quic_settings.h"
#include "server/catalogue.h"
#include "xlink/deployment.h"
#include "xlink/xlink.h"

#define SERVER_ERROR_BYTES 256
#define SERVER_MAX_FFPROBE 64

#define SERVER_SHARE_PER_ADDRESS UINT64_MAX

/* The command line. Strings live as long as the program; NULL where the option was not given. */
typedef struct {
    int argc; /* as it was read from, for whoever reads it again */
    char **argv;
    bool help, describe_settings;
    bool quic, http1; /* listen there? */
    xl_addr quic_addr, http1_addr;
    xl_addr quic_too;     /* of the other IP version; family 0: none */
    xl_addr preferred[2]; /* of --preferred-address: IPv4, IPv6; family 0: none */
    bool mptcp;           /* http1 listens with IPPROTO_MPTCP, which takes plain TCP too */
    const char *cert_file, *key_file, *ciphers;
    const char *root;
    const char *frame_index_file;
    const char *ffprobe[SERVER_MAX_FFPROBE]; /* "/VIDEO=FILE" of --ffprobe */
    size_t ffprobe_count;
    quic_settings settings;
    random_seed seed;
    uint8_t random_key[XL_RANDOM_KEY_BYTES]; /* of random_key_make(), or of the simulator's job */
    bool random_packet_numbers;              /* see xl_config */
    bool without_tickets;                    /* no session tickets: clients cannot resume */
    bool early_data;                         /* QUIC: 0-RTT is accepted; without_tickets: it is not */
    uint64_t max_connections;                /* of each protocol and process; 0: the service's default */
    uint64_t max_per_address;                /* of them; 0: no limit; SERVER_SHARE_PER_ADDRESS: not given */
    const char *out_file, *qlog_dir, *keylog_file;
    uint64_t out_bytes, qlog_files;                /* of --out-bytes, --qlog-files */
    uint64_t workers;                              /* processes; 0: one, without the machinery of several */
    const char *lb_file, *server_id, *params_file; /* of --lb-config, --server-id and --params */
    catalogue_video video;                         /* --bitrate, --fps, --first-frame-bytes */
    bool null_crypto;                              /* simulation only, see xl_config */
} server_config;

/* What the summary adds up over all services. `paths` is a JSON array that services append objects to. */
typedef struct {
    uint64_t stream_bytes_sent, reinjected_bytes, retransmitted_bytes, given_up_bytes;
    uint64_t migrations, connections;
    uint64_t silent_connections; /* of these, by kernel transports that do not tell what they re-inject */
    uint64_t refused;            /* clients that found no room */
    uint64_t retries, stateless_resets, misrouted, forwarded; /* see xl_endpoint_stats */
    json_t *paths;
} server_totals;

typedef struct server server;

/* What a worker process has from its parent. */
typedef struct {
    int udp, tcp; /* sockets that are bound and listen; -1: none */
    xl_addr udp_bound, tcp_bound;
    int inbox;         /* datagrams that reached another worker come here: server/forward.h */
    const int *outbox; /* of each worker */
} server_worker;

/* What --max-connections-per-address means where a service has room for so many connections; 0: no limit. */
uint64_t server_max_per_address(const server_config *, uint64_t max_connections);

const server_config *server_get_config(const server *);
const xl_deployment *server_get_deployment(const server *); /* NULL: none */
const server_worker *server_get_worker(const server *);     /* NULL: the server is this process alone */
catalogue *server_get_catalogue(server *);
/* Gives up a descriptor that is not needed now. False: there is none. */
bool server_release_descriptor(server *);

/* One JSON Lines record: `fields` (its reference is taken, also on failure) gets "t" and "event" in front. A server
 * without --out drops it. */
void server_log(server *, const char *event, json_t *fields, uint64_t now);
/* Numbers connections over all services, from 0. */
uint64_t server_next_connection(server *);

/* A descriptor in the loop. The caller owns the watch; it stays where it is while registered. */
typedef struct server_watch {
    int fd;
    void (*ready)(struct server_watch *, uint32_t events, uint64_t now); /* may remove any watch, its own included */
    void *user;
} server_watch;

/* events: EPOLLIN | EPOLLOUT, level triggered. False when the kernel refuses. */
bool server_watch_add(server *, server_watch *, uint32_t events);
bool server_watch_modify(server *, server_watch *, uint32_t events);
void server_watch_remove(server *, server_watch *); /* before its descriptor is closed */

typedef struct server_service server_service; /* each service defines its own */

typedef struct {
    const char *name; /* member of the listening line: "quic", "http1" */
    bool (*wanted)(const server_config *);
    /* Opens the sockets. NULL with one phrase in error[SERVER_ERROR_BYTES], e.g. "cannot listen on 0.0.0.0:4433:
     * Address already in use". *bound gets the address really bound, port 0 resolved. */
    server_service *(*start)(server *, uint64_t now, xl_addr *bound, char *error);
    uint64_t (*next_timeout)(const server_service *); /* absolute µs; XL_NEVER for none */
    /* Called once after each round of ready descriptors and whenever next_timeout() has come: run timers, send. */
    void (*step)(server_service *, uint64_t now);
    /* The configuration has changed (--params): takes it over. NULL: nothing of it concerns this service. */
    void (*reconfigure)(server_service *, uint64_t now);
    /* Closes all connections (each logs its connection_closed), says goodbye as far as that goes without waiting. */
    void (*stop)(server_service *, uint64_t now);
    void (*add_totals)(const server_service *, server_totals *); /* after stop() */
    void (*free)(server_service *);
} server_service_ops;

/* Sockets that listen, opened before there are workers to share them: the descriptor, or -1 with one phrase in error.
 */
int server_http1_listen(const server_config *, xl_addr *bound, char *error);

extern const server_service_ops server_http1_service; /* server/http1_server.c */
extern const server_service_ops server_quic_service;  /* server/quic.c */

#endif
