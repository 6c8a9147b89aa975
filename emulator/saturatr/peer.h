/* One end of a session, client or server: channels, the flows over them, and how they are kept full. Part of the
 * driver; its decisions are made in window.h, train.h and ledger.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/saturatr/ledger.h"
#include "emulator/saturatr/sizes.h"
#include "emulator/saturatr/socket.h"
#include "emulator/saturatr/train.h"
#include "emulator/saturatr/window.h"
#include "emulator/saturatr/wire.h"

#define SAT_NO_PATH SIZE_MAX

/* One channel: a pair of addresses. */
typedef struct {
    sat_socket *socket; /* borrowed; NULL: not in use */
    xl_addr remote;
    xl_addr local; /* source address; unset: the socket's */
    bool open;     /* the remote end has proved that it receives there */
} sat_route;

typedef struct {
    bool sends, receives;
    sat_window window; /* of a heavy recording */
    sat_train train;   /* of a light recording */
    sat_ledger ledger;
    uint64_t retry_us; /* the device took no more packets: next try */
    uint64_t most_in_flight;
} sat_flow;

typedef struct {
    uint64_t tag_in, tag_out;
    size_t path_count;
    size_t packet_bytes;    /* of the IP packet of data */
    bool ack_via;           /* acknowledgements of all paths use channel SAT_MAX_PATHS */
    size_t via_path;        /* the path that this channel uses; SAT_NO_PATH: none */
    uint32_t train_packets; /* of a light recording, without acknowledgements; 0: heavy */
    uint64_t every_us;      /* of a light recording */
    sat_sizes sizes;        /* of a recording of single packets, which are trains of one packet */
    bool sending;
    sat_flow flows[SAT_MAX_PATHS];
    sat_route routes[SAT_MAX_CHANNELS];
    uint64_t strays; /* datagrams of no session, or of another one */
    int fatal;       /* errno of a send that can never succeed; 0: none */
    size_t fatal_path;
    void (*on_control)(void *user, const sat_packet *packet, const sat_datagram *datagram,
                       sat_socket *socket); /* HELLO and WELCOME */
    void (*on_data)(void *user);            /* called before a data packet is handled; NULL: none */
    void *user;
    uint8_t *segments; /* SAT_GSO_MOST filled data packets */
} sat_peer;

/* False without memory. */
bool sat_peer_init(sat_peer *peer, size_t path_count, size_t packet_bytes);
void sat_peer_free(sat_peer *peer);
/* Returns the channel of a path's acknowledgements. */
uint8_t sat_peer_ack_channel(const sat_peer *peer, size_t path);
/* Starts the flows; limit_bytes: memory for the records of each path. */
void sat_peer_start(sat_peer *peer, bool sends, bool receives, uint64_t limit_bytes, uint64_t now);
/* Returns the data packets of a path that were sent, or given up because the device did not take them. */
uint64_t sat_peer_sent(const sat_peer *peer, size_t path);

/* Handles the datagrams that wait at a socket. */
void sat_peer_receive(sat_peer *peer, sat_socket *socket);
/* Sends due acknowledgements and data. Returns the latest time for the next call. */
uint64_t sat_peer_send(sat_peer *peer);
/* Sends a HELLO or WELCOME over its channel. */
void sat_peer_send_control(sat_peer *peer, const sat_packet *packet);
