/* Internals of a connection: the only room that uses the others. The header of each part has its functions and the
 * structure of its state; connection.h joins the structures. No two parts call each other, not even through a third
 * one: tests/test_rooms.py checks that. docs/explanation/architecture.md lists the parts from the bottom to the top. */
#pragma once

#include "connection/datagrams.h"
#include "connection/early.h"
#include "connection/handshake.h"
#include "connection/key_update.h"
#include "connection/migration.h"
#include "connection/qoe.h"
#include "connection/records.h"
#include "connection/silence.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "path/cids.h"
#include "path/path.h"
#include "path/path_ids.h"
#include "qlog/qlog.h"
#include "reinjection/reinjection.h"
#include "scheduler/scheduler.h"
#include "wire/transport_params.h"

#define XL_MAX_ACK_DELAY_US   25000
#define XL_MIN_ACK_DELAY_US   1000 /* smallest delay that ACK_FREQUENCY may request: drivers' timers are that exact */
#define XL_ACK_DELAY_EXPONENT 3
#define XL_MIN_DATAGRAM       1200

/* The random choices of a connection: a stream of its own for each purpose. */
typedef struct {
    xl_drbg_stream cids, challenges, skips; /* skips: of packet numbers */
    xl_drbg_stream first_numbers;           /* of packet number spaces */
    xl_drbg_stream grease;                  /* reserved values, and the spin bit where it shows nothing */
} xl_connection_random;

/* The endpoint's state of this connection. */
typedef struct {
    bool is_ready;   /* in the queue of connections to transmit */
    bool is_touched; /* its next timeout is to be computed again */
    struct xl_connection *ready_prev, *ready_next;
    size_t index, timer, touched_place;
    uint64_t last_event;            /* number of its latest event; 0: none yet */
    struct xl_cid_node *cid_head;   /* its CIDs in the endpoint's map */
    struct xl_cid_node *token_head; /* server: the peer's reset tokens in the endpoint's other map */
    struct xl_client *client;       /* server: client that the connection counts for; NULL: none */
    bool is_proven;                 /* server: it counts as one with a proven address */
} xl_endpoint_slot;

/* A PATH_RESPONSE to a PATH_CHALLENGE that came from another address than its path's and did not move the path. Only
 * the latest is kept: each is answered at once or not at all. */
typedef struct {
    size_t room; /* bytes that the datagram may have (RFC 9000 section 8.1); 0: none is due */
    int path;    /* its connection ID is used there too: the peer's address changed, not ours (section 9.5) */
    xl_addr local, remote;
    uint8_t data[8];
} xl_elsewhere;

struct xl_connection {
    const xl_config *config; /* the endpoint's */
    xl_connection_hooks hooks;
    void *user;
    bool is_server;
    xl_conn_state state;
    xl_connection_random random;
    xl_qlog *qlog;
    uint64_t now;            /* time of the current call */
    unsigned acks_in_packet; /* ACK frames so far in the packet that is being processed */
    uint64_t frame_type;     /* of the frame that is being processed; 0: none */
    xl_connection_stats stats;

    xl_level_state level[XL_LEVEL_COUNT];
    xl_space space[XL_LEVEL_COUNT];
    bool level_discarded[XL_LEVEL_COUNT];
    xl_handshake handshake;
    xl_early early;
    uint64_t grease; /* random number for the application; 0: none */
    bool spins;      /* the spin bit shows the RTT; if false, it is random if configured, else 0 */
    xl_key_update key_update;
    xl_transport_params local_params, peer_params;

    xl_cids local_cids, remote_cids;
    size_t local_cid_bytes; /* length of ours */
    size_t path_count;
    xl_path *path[XL_MAX_PATHS + 1]; /* owned, the first path_count of them; then NULL */
    int active;                      /* single path: the path in use */
    bool multipath;
    xl_path_ids *path_ids; /* dialect `ietf`; NULL: `xlink`, or no multipath */
    xl_migration migration;
    xl_elsewhere elsewhere;
    uint64_t manage_at; /* next check of automatic path management */
    xl_silence silence;

    xl_streams streams;
    xl_datagrams datagrams;
    xl_ack_policy ack_policy;  /* when packets of the peer are acknowledged */
    uint64_t ack_policy_after; /* ACK_FREQUENCY frames with a number below this are old */
    xl_records records;
    xl_qoe_exchange qoe;

    /* Schemes. */
    const xl_scheduler_ops *scheduler;
    alignas(16) uint8_t scheduler_state[XL_SCHEDULER_STATE_BYTES];
    xl_scheduler_decision decision; /* the latest */
    const xl_reinjection_ops *reinjection;
    const xl_cc_ops *cc;
    xl_cc_group cc_group;

    /* Timers, XL_NEVER = off. */
    uint64_t idle_deadline, pacer_wakeup, reinjection_recheck;
    uint64_t deadline; /* earliest deadline except pacer_wakeup, as of the latest xl_conn_next_timeout() */
    uint64_t idle_timeout_us;
    bool eliciting_since_receive;
    bool has_sent_all;   /* after the latest packet there is certainly nothing more to send now */
    unsigned until_skip; /* packets until a packet number is skipped */

    xl_closing closing;
    xl_endpoint_slot slot;
};

/* A loop over the paths of c. type: xl_path or const xl_path. */
#define XL_EACH_PATH(type, p, c) for (type *const *p##_at = (type *const *)(c)->path, *p; (p = *p##_at); p##_at++)

xl_connection *xl_conn_new(const xl_config *, const xl_connection_hooks *, bool is_server, const xl_connection_random *,
                           uint64_t now);
void xl_conn_destroy(xl_connection *);
/* The endpoint's configuration has changed: applies what can change during a connection. */
void xl_conn_reconfigure(xl_connection *, uint64_t now);
int xl_conn_start_client(xl_connection *, const char *server_name, const xl_addr *local, const xl_addr *remote,
                         xl_technology, uint64_t now);
/* before_retry: if a Retry's token came back, the destination CID of the client's very first packet; else NULL.
 * is_proven: that token, or one of NEW_TOKEN, proves that the client receives packets at `remote`. */
int xl_conn_start_server(xl_connection *, const xl_packet_header *, const xl_cid *before_retry, bool is_proven,
                         const xl_addr *local, const xl_addr *remote, uint64_t now);
/* Call it after anything was done to the connection, before xl_conn_handle_timeout(). */
uint64_t xl_conn_next_timeout(xl_connection *);
void xl_conn_handle_timeout(xl_connection *, uint64_t now);
