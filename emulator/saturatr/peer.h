/* One end of a session: channels, the flows over them, and how they are kept full. The client and the server have this
 * in common. Part of the driver; what it decides with is in window.h and ledger.h. */
#ifndef RAILYARD_SATURATR_PEER_H
#define RAILYARD_SATURATR_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/saturatr/auth.h"
#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/sizes.h"
#include "emulator/saturatr/socket.h"
#include "emulator/saturatr/train.h"
#include "emulator/saturatr/window.h"
#include "emulator/saturatr/wire.h"

#define SAT_NO_PATH SIZE_MAX

/* One pair of addresses. */
typedef struct {
    sat_socket *socket; /* borrowed; NULL: not in use */
    sat_address remote;
    sat_address local; /* source address; length 0 = the socket's */
    bool open;         /* the remote end is known to receive there */
} sat_route;

typedef struct {
    bool sends, receives;
    sat_window window; /* of a heavy recording */
    sat_train train;   /* of a light one */
    sat_ledger ledger;
    uint64_t retry_us; /* the device took no more; not before then */
    uint64_t most_in_flight;
    uint64_t send_errors;
} sat_flow;

typedef struct {
    uint64_t tag_in, tag_out;
    size_t path_count;
    size_t packet_bytes;    /* of the IP packet of data */
    bool ack_via;           /* acknowledgements of all paths on channel SAT_MAX_PATHS */
    size_t via_path;        /* the path that this channel runs over, SAT_NO_PATH = none of them */
    uint32_t train_packets; /* of a light recording, in which nothing is acknowledged; 0: heavy */
    uint64_t every_us;      /* of a light recording */
    sat_sizes sizes;        /* of one that sends packets alone: trains of one packet */
    bool sending;
    sat_flow flows[SAT_MAX_PATHS];
    sat_route routes[SAT_MAX_CHANNELS];
    uint64_t strays; /* datagrams that belong to no session, or to another */
    int fatal;       /* errno of a send that will never work, 0 = none */
    size_t fatal_path;
    void (*on_control)(void *user, const sat_packet *packet, const sat_datagram *datagram,
                       sat_socket *socket); /* HELLO and WELCOME */
    void (*on_data)(void *user);            /* before a data packet is taken in; NULL = nobody wants to know */
    void *user;
    uint8_t *segments; /* SAT_GSO_MOST data packets, filled */
} sat_peer;

/* False without memory. */
bool sat_peer_init(sat_peer *peer, size_t path_count, size_t packet_bytes);
void sat_peer_free(sat_peer *peer);
/* The channel for the acknowledgements of a path. */
uint8_t sat_peer_ack_channel(const sat_peer *peer, size_t path);
/* Starts the flows; limit_bytes: memory for the records of each path. */
void sat_peer_start(sat_peer *peer, bool sends, bool receives, uint64_t limit_bytes, uint64_t now);
/* Data packets of a path that were sent, or given up because the device did not take them. */
uint64_t sat_peer_sent(const sat_peer *peer, size_t path);

/* Takes in what waits at a socket. */
void sat_peer_receive(sat_peer *peer, sat_socket *socket);
/* Sends acknowledgements and data that are due; returns when to call again at the latest. */
uint64_t sat_peer_send(sat_peer *peer);
/* Sends a HELLO or WELCOME over its channel. */
void sat_peer_send_control(sat_peer *peer, const sat_packet *packet);

#endif
