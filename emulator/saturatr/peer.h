/* One end of a session: channels, the flows over them, and how they are kept full. The client and the server have this
 * in common. Part of the driver; what it decides with is in window.h and ledger.h. */
#ifndef RAILYARD_SATURATR_PEER_H
#define RAILYARD_SATURATR_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/saturatr/auth.h"
#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/socket.h"
#include "emulator/saturatr/window.h"
#include "emulator/saturatr/wire.h"

#define SAT_NO_PATH SIZE_MAX

/* One pair of addresses. */
struct sat_route {
    struct sat_socket *socket; /* borrowed; NULL: not in use */
    struct sat_address remote;
    struct sat_address local; /* source address; length 0 = the socket's */
    bool open;                /* the remote end is known to receive there */
};

struct sat_flow {
    bool sends, receives;
    struct sat_window window;
    struct sat_ledger ledger;
    uint64_t retry_us; /* the device took no more; not before then */
    uint64_t most_in_flight;
    uint64_t send_errors;
};

struct sat_peer {
    enum sat_role role;
    uint64_t tag_in, tag_out;
    size_t path_count;
    size_t packet_bytes; /* of the IP packet of data */
    bool ack_via;        /* acknowledgements of all paths on channel SAT_MAX_PATHS */
    size_t via_path;     /* the path that this channel runs over, SAT_NO_PATH = none of them */
    bool sending;
    struct sat_flow flows[SAT_MAX_PATHS];
    struct sat_route routes[SAT_MAX_CHANNELS];
    uint64_t strays; /* datagrams that belong to no session, or to another */
    int fatal;       /* errno of a send that will never work, 0 = none */
    size_t fatal_path;
    void (*on_control)(void *user, const struct sat_packet *packet, const struct sat_datagram *datagram,
                       struct sat_socket *socket); /* HELLO and WELCOME */
    void (*on_data)(void *user);                   /* before a data packet is taken in; NULL = nobody wants to know */
    void *user;
    uint8_t *segments; /* SAT_GSO_MOST data packets, filled */
};

/* 0, or -1 without memory. */
int sat_peer_init(struct sat_peer *peer, enum sat_role role, size_t path_count, size_t packet_bytes);
void sat_peer_free(struct sat_peer *peer);
/* The channel for the acknowledgements of a path. */
uint8_t sat_peer_ack_channel(const struct sat_peer *peer, size_t path);
/* Starts the flows; limit_bytes: memory for the records of each path. */
void sat_peer_start(struct sat_peer *peer, bool sends, bool receives, uint64_t limit_bytes, uint64_t now);

/* Takes in what waits at a socket. */
void sat_peer_receive(struct sat_peer *peer, struct sat_socket *socket);
/* Sends acknowledgements and data that are due; returns when to call again at the latest. */
uint64_t sat_peer_send(struct sat_peer *peer);
/* Sends a HELLO or WELCOME over its channel. */
void sat_peer_send_control(struct sat_peer *peer, const struct sat_packet *packet);

#endif
