/* xlink-server: the common part of its services (HTTP/1.1 over TCP and MPTCP, HTTP/3 over QUIC).
 *
 * One thread, one epoll set. A service opens its sockets in start(), registers them with the loop, and is called when
 * one is ready and when its next timeout has come. catalogue_respond() in server/catalogue.h decides the answers of all
 * HTTP versions. */
#pragma once

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

/* The command line. Strings live as long as the program; NULL: the option was not given. */
typedef struct {
    int argc; /* its source, to read it again */
    char **argv;
    bool help, describe_settings;
    xl_addr quic_addr, http1_addr; /* where to listen for each; family 0: nowhere */
    xl_addr quic_too;              /* second address, of the other IP version; family 0: none */
    xl_addr preferred[2];          /* of --preferred-address: IPv4, IPv6; family 0: none */
    bool mptcp;                    /* http1 listens with IPPROTO_MPTCP, which takes plain TCP too */
    const char *cert_file, *key_file, *ciphers;
    const char *root;
    const char *frame_index_file;
    const char *ffprobe[SERVER_MAX_FFPROBE]; /* "/VIDEO=FILE" of --ffprobe */
    size_t ffprobe_count;
    quic_settings settings;
    random_seed seed;
    uint8_t random_key[XL_RANDOM_KEY_BYTES]; /* from random_key_make() or the simulator's job */
    bool random_packet_numbers;              /* see xl_config */
    bool without_tickets;                    /* no session tickets: clients cannot resume */
    bool early_data;                         /* QUIC: 0-RTT is accepted; without_tickets: it is not */
    uint64_t max_connections;                /* for each protocol and process; 0: the service's default */
    uint64_t max_per_address;                /* connections; 0: no limit; SERVER_SHARE_PER_ADDRESS: not given */
    const char *out_file, *qlog_dir, *keylog_file;
    uint64_t out_bytes, qlog_files;                /* of --out-bytes, --qlog-files */
    uint64_t workers;                              /* processes; 0: one, which is not a worker */
    const char *lb_file, *server_id, *params_file; /* of --lb-config, --server-id and --params */
    catalogue_video video;                         /* --bitrate, --fps, --first-frame-bytes */
    bool null_crypto;                              /* simulation only, see xl_config */
} server_config;

/* Totals of all services, for the summary. `paths` is a JSON array to which services append objects. */
typedef struct {
    uint64_t stream_bytes_sent, reinjected_bytes, retransmitted_bytes, given_up_bytes;
    uint64_t migrations, connections;
    uint64_t silent_connections; /* of these, over kernel transports that do not report re-injection */
    uint64_t refused;            /* for lack of room: connections and Initials */
    uint64_t retries, stateless_resets, misrouted, forwarded; /* see xl_endpoint_stats */
    json_t *paths;
} server_totals;

typedef struct server server;

/* What a worker process inherits from its parent. */
typedef struct {
    int udp, tcp; /* bound and listening sockets; -1: none */
    xl_addr udp_bound, tcp_bound;
    int inbox;         /* datagrams that reached another worker arrive here: server/forward.h */
    const int *outbox; /* of each worker */
} server_worker;

/* The value of --max-connections-per-address for a service with room for max_connections; 0: no limit. */
uint64_t server_max_per_address(const server_config *, uint64_t max_connections);

/* Numbers connections over all services, from 0. */
uint64_t server_next_connection(server *);

/* A descriptor in the loop. The caller owns the watch and must not move it while it is registered. */
typedef struct server_watch {
    int fd;
    void (*ready)(struct server_watch *, uint32_t events, uint64_t now); /* may remove any watch, its own included */
    void *user;
} server_watch;

/* Watches for EPOLLIN at first; events: EPOLLIN | EPOLLOUT. Level triggered. False: the kernel refused. */
bool server_watch_add(server *, server_watch *);
bool server_watch_modify(server *, server_watch *, uint32_t events);
void server_watch_remove(server *, server_watch *); /* before its descriptor is closed */

typedef struct server_service server_service; /* each service defines its own */

typedef struct {
    const char *name; /* member of the listening line: "quic", "http1" */
    bool (*wanted)(const server_config *);
    /* Opens the sockets. NULL: error[SERVER_ERROR_BYTES] has a phrase, e.g. "cannot listen on 0.0.0.0:4433: Address
     * already in use". *bound: the address with the port that was bound, also for port 0. */
    server_service *(*start)(server *, uint64_t now, xl_addr *bound, char *error);
    uint64_t (*next_timeout)(const server_service *); /* µs on the clock of `now`; XL_NEVER: none */
    /* Runs timers and sends. Called after each round of ready descriptors, and when next_timeout() has come. */
    void (*step)(server_service *, uint64_t now);
    /* Applies a changed configuration (--params). NULL: it does not affect this service. */
    void (*reconfigure)(server_service *, uint64_t now);
    /* Closes all connections; each logs its connection_closed. Sends closing packets without waiting. */
    void (*stop)(server_service *, uint64_t now);
    void (*add_totals)(const server_service *, server_totals *); /* after stop() */
    void (*free)(server_service *);
} server_service_ops;

/* Opens a listening socket before the workers that share it. Returns the descriptor, or -1 with a phrase in error. */
int server_http1_listen(const server_config *, xl_addr *bound, char *error);

extern const server_service_ops server_http1_service; /* server/http1_server.c */
extern const server_service_ops server_quic_service;  /* server/quic.c */
