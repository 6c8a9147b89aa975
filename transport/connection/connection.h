/* A connection, inside: the only room that knows the others. Files:
 *   connection.c  life cycle, timers, events     handshake.c  TLS, keys, transport parameters
 *   receive.c     datagram in, decryption        frames.c     what each received frame does
 *   acks.c        acknowledgement, loss, PTO     streams.c    streams and their public API
 *   paths.c       opening, validation            transmit.c   datagram out: path, content
 *   path_status.c PATH_STATUS, standby paths     migration.c  of a single-path connection
 *   builder.c     one packet out
 *   rebinding.c   addresses that change            management.c standby and abandon by themselves
 *   reinject.c    what is sent twice             qoe.c        when the player's signal goes out
 *   room.c        what send buffers take         key_update.c generations of the 1-RTT keys, limits of their use */
#ifndef XL_CONNECTION_CONNECTION_H
#define XL_CONNECTION_CONNECTION_H

#include "crypto/crypto.h"
#include "crypto/random.h"
#include "path/cids.h"
#include "path/path.h"
#include "qlog/qlog.h"
#include "reinjection/reinjection.h"
#include "scheduler/scheduler.h"
#include "stream/flow.h"
#include "stream/receive.h"
#include "stream/send.h"
#include "wire/transport_params.h"

#define XL_MAX_ACK_DELAY_US   25000
#define XL_ACK_DELAY_EXPONENT 3
#define XL_MIN_DATAGRAM       1200
#define XL_CRYPTO_BUFFER      65536
#define XL_SUSPECT_PTOS       2       /* consecutive PTOs after which a path is suspect */
#define XL_SUSPECT_PTO_CAP_US 1000000 /* a suspect path is probed at least this often */

/* What a sent packet carried, as far as an acknowledgement or a loss means something for it. */
typedef enum {
    XL_SF_STREAM,
    XL_SF_CRYPTO,
    XL_SF_ACK,
    XL_SF_RESET_STREAM,
    XL_SF_STOP_SENDING,
    XL_SF_MAX_DATA,
    XL_SF_MAX_STREAM_DATA,
    XL_SF_MAX_STREAMS_BIDI,
    XL_SF_MAX_STREAMS_UNI,
    XL_SF_DATA_BLOCKED,
    XL_SF_STREAM_DATA_BLOCKED,
    XL_SF_STREAMS_BLOCKED,
    XL_SF_NEW_CID,
    XL_SF_RETIRE_CID,
    XL_SF_HANDSHAKE_DONE,
    XL_SF_PATH_STATUS,
    XL_SF_QOE,
} xl_sf_kind;

struct xl_sent_frame {
    xl_sent_frame *next; /* in its packet, and in the pool */
    uint8_t kind;
    bool fin;
    bool is_queued;               /* in its stream's unacked queue */
    uint8_t copies;               /* times it was re-injected */
    uint8_t copied_on;            /* bit set of the paths that carried a copy */
    int8_t path;                  /* index of the path it is in flight on */
    uint32_t len, copied;         /* copied: how much of it was re-injected in the present round */
    uint64_t id;                  /* stream ID; level; sequence number; path index; SF_ACK: number of the space;
                                   * SF_STREAMS_BLOCKED: 1 unidirectional */
    uint64_t offset;              /* stream or crypto offset; SF_ACK: largest acknowledged; BLOCKED: the limit */
    uint64_t sent_at, sent_total; /* when, and the path's bytes ever sent by then */
    xl_sent_frame *queue_prev, *queue_next; /* unacked queue of its stream */
};

typedef struct {
    xl_sent_frame *head, *tail;
} xl_unacked_queue;

typedef struct xl_stream {
    uint64_t id;
    uint8_t priority;
    bool has_send, has_recv;
    xl_send send;
    xl_recv recv;
    xl_flow_out send_flow; /* used: highest offset sent */
    xl_flow_in recv_flow;
    bool has_mark;
    xl_frame_mark mark;
    bool reset_pending, reset_sent, reset_acked; /* our RESET_STREAM */
    bool stop_pending, stop_sent;
    bool max_data_pending, blocked_pending;
    uint64_t carried_to[XL_MAX_PATHS]; /* redundant scheduler: how far that path has walked through the stream */
    uint8_t fin_carried;               /* bit i: path i carried the FIN */
    uint64_t reset_code, stop_code;
    bool peer_reset;                         /* RESET_STREAM received: the receiving half is over */
    bool recv_done;                          /* the application has taken the end, or nobody will */
    bool readable_queued;                    /* an event is waiting */
    bool writable_wanted;                    /* the application was told "full" */
    uint64_t expected;                       /* bytes that the application means to write in all; 0: it did not say */
    xl_unacked_queue unacked[XL_MAX_PATHS];  /* in flight on that path and not yet re-injected: in order of sending */
    struct xl_stream *send_prev, *send_next; /* list of streams with a send side that is not done, by priority, id */
    bool in_send_list;
    uint8_t refusal[XL_MAX_PATHS]; /* why nothing of it is re-injected onto that path, as the log last heard */
} xl_stream;

typedef struct {
    xl_keys *read, *write;
    xl_send send; /* CRYPTO */
    xl_recv recv;
} xl_level_state;

typedef enum { XL_CONN_HANDSHAKE, XL_CONN_OPEN, XL_CONN_CLOSING, XL_CONN_DRAINING, XL_CONN_CLOSED } xl_conn_state;

/* The random choices of a connection: a stream of its own for each purpose. */
typedef struct {
    xl_drbg_stream cids, challenges, skips; /* skips: of packet numbers */
} xl_connection_random;

/* What a connection asks of its endpoint. */
typedef struct {
    void *user;
    void (*event)(void *user, const xl_event *);
    void (*make_cid)(void *user, xl_drbg_stream *, xl_cid *); /* one that is not in use */
    int (*cid_added)(void *user, const xl_cid *, xl_connection *);
    void (*cid_removed)(void *user, const xl_cid *);
    void (*wake)(void *user, xl_connection *);    /* may have something to transmit */
    void (*touched)(void *user, xl_connection *); /* its state, and so its next timeout, may change */
    int (*reset_token)(void *user, const xl_cid *, uint8_t token[16]); /* 0 or XL_ERR_CRYPTO: there is none */
    xl_budget_pool *send_pool;                                         /* of the send buffers of all connections */
} xl_connection_hooks;

struct xl_connection {
    const xl_config *config; /* the endpoint's */
    xl_connection_hooks hooks;
    void *user;
    bool is_server;
    xl_conn_state state;
    xl_connection_random random;
    xl_qlog *qlog;
    uint64_t now;            /* of the call being carried out */
    unsigned acks_in_packet; /* ACK frames, of the packet that is being taken */

    /* Handshake. */
    xl_tls *tls;
    xl_level_state level[XL_LEVEL_COUNT];
    xl_space space[XL_LEVEL_COUNT];
    bool level_discarded[XL_LEVEL_COUNT];
    bool handshake_complete, handshake_confirmed, handshake_done_pending, peer_params_seen;
    bool connected_reported;
    bool address_validated_by_peer; /* client: the server surely has our address (RFC 9002 6.2.2.1) */
    xl_cid odcid, initial_scid_peer, retry_scid;
    bool has_retry;
    uint8_t *token; /* of a Retry */
    size_t token_len;
    xl_transport_params local_params, peer_params;

    /* Key update (RFC 9001 section 6). */
    bool key_phase;
    uint64_t key_generation; /* updates of the reading keys so far; the sending keys follow before the next packet */
    uint64_t write_generation;
    xl_keys *next_read;           /* made ahead; NULL from an update to the next datagram out */
    xl_keys *previous_read;       /* for packets that are late */
    uint64_t previous_read_until; /* when previous_read is thrown away; XL_NEVER: nothing of this phase has come yet */
    uint64_t phase_seen_at;       /* the first packet of this phase came then; XL_NEVER = none has */
    bool phase_answered;          /* an acknowledgement of one has left */
    bool phase_acked;             /* on each open path a packet that we sent in this phase was acknowledged */
    uint64_t update_from;         /* we may update from then on */
    bool packet_is_old;           /* the packet that is being taken was opened by previous_read */
    uint64_t forged_packets;      /* that no key opened, of all paths; Initials do not count */

    /* Connection IDs and paths. */
    xl_cids local_cids, remote_cids;
    size_t local_cid_bytes; /* length of ours */
    size_t path_count;
    xl_path path[XL_MAX_PATHS];
    int active; /* single path: the path in use */
    bool multipath, qoe_field;
    int migrating_to;            /* client: candidate being probed, -1 none */
    uint64_t expecting_since;    /* client: when the latest request was sent; XL_NEVER: it is about to be */
    uint64_t migration_probe_at; /* when the candidate's first challenge was made */
    uint64_t manage_at;          /* automatic path management looks again then */
    uint64_t migration_retry_at; /* the last attempt ended then */
    int migration_last;          /* candidate probed last, for taking turns */
    bool asks_primary;           /* a challenge on the first path, which is not in use, awaits its answer */
    uint64_t primary_ask_at;     /* the next one is due then */
    uint64_t primary_ok_since, primary_ok_at; /* its unbroken answers: the first, the newest; ok_at 0 = none */
    uint64_t migrations;

    /* Streams and flow control. */
    xl_stream **stream;
    size_t stream_count, stream_cap;
    xl_stream *send_head;
    uint64_t next_stream[2];         /* ours: bidi, uni: count opened */
    uint64_t max_streams_peer[2];    /* the peer lets us open */
    uint64_t opened_by_peer[2];      /* count */
    uint64_t max_streams_local[2];   /* announced to the peer */
    uint64_t closed_by_peer_side[2]; /* peer's streams that are done: raises max_streams_local */
    bool max_streams_pending[2];
    bool data_blocked_pending, streams_blocked_pending[2];
    uint64_t streams_blocked_at[2]; /* limit at which STREAMS_BLOCKED was last sent, UINT64_MAX none */
    bool max_data_pending;
    bool control_dirty; /* some stream may have a control frame to send */
    xl_flow_out flow_out;
    xl_flow_in flow_in;
    xl_budget send_budget; /* of all send buffers */

    /* Schemes. */
    const xl_scheduler_ops *scheduler;
    alignas(16) uint8_t scheduler_state[XL_SCHEDULER_STATE_BYTES];
    xl_scheduler_decision decision; /* the latest */
    const xl_reinjection_ops *reinjection;
    const xl_cc_ops *cc;
    xl_cc_group cc_group;
    xl_qoe_gate gate;
    const char *gate_why;     /* of its decision, as the log last heard; NULL = never */
    xl_qoe qoe;               /* ours, to be sent */
    bool qoe_fresh;           /* the next ACK_MP carries it */
    bool qoe_signal_pending;  /* a QOE_CONTROL_SIGNALS frame shall carry it … */
    uint64_t qoe_signal_from; /* … from then on */
    uint64_t qoe_signals;     /* frames sent: the number of the newest */
    xl_qoe qoe_signalled;     /* what it said */

    const char *selected_rule[XL_MAX_PATHS];
    bool logged_waiting;                 /* that the scheduler waits, since data was sent last */
    uint32_t selected_why[XL_MAX_PATHS]; /* why that path was chosen for data, as the log last heard; 0 = never */

    xl_sent_frame *pool; /* free records */
    void **slabs;
    size_t slab_count;

    /* Timers, XL_NEVER = off. */
    uint64_t handshake_deadline; /* a handshake that is not complete by then is given up; off once it is */
    uint64_t idle_deadline, close_deadline, pacer_wakeup, reinjection_recheck;
    uint64_t idle_timeout_us;
    bool eliciting_since_receive;
    unsigned until_skip; /* packets until a packet number is left out */

    /* Closing. */
    bool close_pending, close_application;
    uint64_t close_code;
    char close_words[96];
    uint64_t close_packets_received;

    xl_connection_stats stats;

    /* The endpoint's. */
    bool is_ready;    /* in the endpoint's queue of connections to transmit */
    bool is_reported; /* XL_EVENT_CLOSED was emitted */
    bool is_touched;  /* its next timeout is to be computed anew */
    struct xl_connection *ready_prev, *ready_next;
    size_t endpoint_index, timer_slot, touched_place;
    uint64_t last_event;          /* number of its newest event; 0 = none yet */
    struct xl_cid_node *cid_head; /* its CIDs in the endpoint's map */
    struct xl_client *client;     /* server: whom it counts for; NULL: nobody */
    bool is_proven;               /* … as a connection whose address is proven */
};

/* connection.c */
xl_connection *xl_conn_new(const xl_config *, const xl_connection_hooks *, bool is_server, const xl_connection_random *,
                           uint64_t now);
void xl_conn_destroy(xl_connection *);
/* The endpoint's configuration has changed: takes over what can change in mid-life. */
void xl_conn_reconfigure(xl_connection *, uint64_t now);
int xl_conn_start_client(xl_connection *, const char *server_name, const xl_addr *local, const xl_addr *remote,
                         xl_technology, uint64_t now);
/* before_retry: where a Retry's token came back, the CID that the client's very first packet went to; else NULL. */
int xl_conn_start_server(xl_connection *, const xl_packet_header *, const xl_cid *before_retry, const xl_addr *local,
                         const xl_addr *remote, uint64_t now);
uint64_t xl_conn_next_timeout(const xl_connection *);
void xl_conn_handle_timeout(xl_connection *, uint64_t now);
/* The peer or we broke something: CONNECTION_CLOSE with this transport error follows. */
void xl_conn_fail(xl_connection *, uint64_t transport_error, const char *reason);
/* Over, without a word to the peer: nothing is sent any more. `words` for the log and the event. */
void xl_conn_abort(xl_connection *, xl_close_reason, const char *words);
/* The peer has closed the connection: what still comes is ignored for three PTOs (RFC 9000 section 10.2.2). `words` as
 * above, printable. */
void xl_conn_drain(xl_connection *, xl_close_reason, const char *words);
void xl_conn_emit(xl_connection *, xl_event);
void xl_conn_wake(xl_connection *);
/* Whatever enters a connection from outside and may change its state begins with one of these: the endpoint asks for a
 * connection's next timeout only after it was touched. The sanitizers' build compares with the whole truth each time.
 */
void xl_conn_touch(xl_connection *);
void xl_conn_enter(xl_connection *, uint64_t now); /* the same, when the caller says the time */
bool xl_conn_is_live(const xl_connection *);       /* handshake or open */
uint64_t xl_conn_peer_ack_delay_us(const xl_connection *);
uint64_t xl_conn_max_pto(const xl_connection *);
void xl_conn_restart_idle(xl_connection *, uint64_t now);

/* handshake.c */
int xl_conn_make_tls(xl_connection *, const char *server_name);
int xl_conn_install_initial_keys(xl_connection *, const xl_cid *dcid);
void xl_conn_crypto_received(xl_connection *, xl_level);
void xl_conn_discard_level(xl_connection *, xl_level);
void xl_conn_confirm_handshake(xl_connection *);
void xl_conn_retry(xl_connection *, const xl_packet_header *, const uint8_t *packet, size_t len);

/* receive.c */
void xl_conn_receive(xl_connection *, const xl_datagram *, uint8_t *data, uint64_t now);

/* qoe.c: the player's signal, client to server. */
bool xl_conn_qoe_signal_is_due(const xl_connection *);
uint64_t xl_conn_qoe_deadline(const xl_connection *);
void xl_conn_qoe_signal_lost(xl_connection *, uint64_t number);

/* frames.c: returns 0 or the transport error to close with. */
typedef struct {
    xl_path *path; /* the path that it came on */
    xl_packet_type type;
    xl_level level;
    xl_space *space;
    uint64_t local_seq; /* 1-RTT: sequence number of its destination CID */
    uint64_t pn;
} xl_packet_context;
uint64_t xl_conn_take_frame(xl_connection *, const xl_frame *, const xl_packet_context *);

/* key_update.c */
typedef enum { XL_KEYS_PREVIOUS, XL_KEYS_PRESENT, XL_KEYS_NEXT } xl_key_age;
/* As xl_keys_open(), with the keys of the packet's phase. Nothing changes yet: that is xl_conn_take_phase(). */
ssize_t xl_conn_open_1rtt(xl_connection *, const xl_packet_context *, uint64_t path_id, uint8_t *packet, size_t len,
                          size_t pn_offset, size_t pn_len, uint8_t **payload, xl_key_age *);
/* An authentic packet that is no duplicate: 0 or the transport error to close with. The peer's update is followed. */
uint64_t xl_conn_take_phase(xl_connection *, xl_space *, uint64_t pn, xl_key_age);
/* Makes the keys that are missing after an update; before each datagram out. 0 or XL_ERR_MEMORY. */
int xl_conn_prepare_keys(xl_connection *);
bool xl_conn_may_update_keys(const xl_connection *);
int xl_conn_update_keys(xl_connection *);           /* ours, where xl_conn_may_update_keys() */
void xl_conn_forget_previous_keys(xl_connection *); /* when it is time */
void xl_conn_phase_was_acked(xl_connection *);      /* perhaps: an acknowledgement came */
/* A packet was protected, or did not open: updates the keys in time, closes where a limit is reached. */
void xl_conn_count_sealed(xl_connection *);
void xl_conn_count_forged(xl_connection *, const xl_keys *);

/* acks.c */
uint64_t xl_conn_take_ack(xl_connection *, xl_space *, xl_level, xl_path *arrived_on, const xl_ack_frame *);
void xl_conn_detect_losses(xl_connection *, xl_space *, xl_level);
void xl_conn_probe_timeout(xl_connection *, xl_path *);
void xl_conn_give_up_in_flight(xl_connection *, xl_path *);
void xl_conn_drop_space(xl_connection *, xl_space *);
void xl_conn_log_metrics(xl_connection *, xl_path *);
xl_level xl_conn_level_of_space(const xl_connection *, const xl_space *);

/* streams.c */
xl_stream *xl_conn_stream(const xl_connection *, uint64_t id);
/* The stream that a received frame names: opens the peer's. NULL with *error = 0: it is gone already, ignore. */
xl_stream *xl_conn_stream_for_frame(xl_connection *, uint64_t id, bool needs_recv, uint64_t *error);
void xl_conn_stream_settle(xl_connection *, xl_stream *); /* removes it when all is done */
/* Tells the peer, once for each limit, that flow control holds back what the stream has to send (RFC 9000, 4.1). */
void xl_conn_note_blocked(xl_connection *, xl_stream *);
void xl_conn_notify_readable(xl_connection *, xl_stream *);
bool xl_conn_is_reset(const xl_stream *); /* by us: RESET_STREAM is to be sent, or was */
void xl_conn_reset_sending(xl_connection *, xl_stream *, uint64_t error_code);
void xl_conn_free_streams(xl_connection *);
/* Bytes that count as read: credit of the connection goes back to the peer. */
void xl_conn_grant_credit(xl_connection *, uint64_t bytes);
/* Nobody will read the stream: what has come of it is taken. With its end the stream may be gone. */
void xl_conn_discard_unread(xl_connection *, xl_stream *);
bool xl_conn_expects_data(const xl_connection *);
xl_sent_frame *xl_conn_record_new(xl_connection *);
void xl_conn_record_free(xl_connection *, xl_sent_frame *);
void xl_conn_unacked_push(xl_stream *, xl_sent_frame *);
void xl_conn_unacked_remove(xl_stream *, xl_sent_frame *);

/* room.c: what send buffers take from the application. */
/* Bytes that a stream takes now. */
size_t xl_conn_send_room(const xl_connection *, const xl_stream *);
void xl_conn_await_room(xl_connection *, xl_stream *); /* the application has more: XL_EVENT_STREAM_WRITABLE follows */
/* Tells the streams that wait for room and have some. */
void xl_conn_offer_room(xl_connection *);

/* paths.c */
/* Bytes of a datagram that both ends take: 1200 until the peer's transport parameters are known. */
uint64_t xl_conn_mtu(const xl_connection *);
xl_path *xl_conn_path_new(xl_connection *, const xl_addr *local, const xl_addr *remote, xl_technology);
xl_path *xl_conn_path_by_local_seq(xl_connection *, uint64_t local_seq);
xl_path *xl_conn_path_by_remote_seq(xl_connection *, uint64_t remote_seq);
xl_path *xl_conn_path_by_address(xl_connection *, const xl_addr *local, const xl_addr *remote);
/* The path that a 1-RTT packet arrived on, by its header alone: changes nothing. NULL: drop the packet, or, with
 * *may_open, ask again by the second function once the packet was authenticated. That one opens a path, and gives NULL
 * where there can be no further one. */
xl_path *xl_conn_path_for_packet(xl_connection *, uint64_t local_seq, const xl_addr *local, const xl_addr *remote,
                                 bool *may_open);
xl_path *xl_conn_path_for_authentic_packet(xl_connection *, uint64_t local_seq, const xl_addr *local,
                                           const xl_addr *remote);
/* After a packet was authenticated: address changes of the peer (NAT rebinding, migration). */
void xl_conn_path_packet_seen(xl_connection *, xl_path *, bool is_probing, bool is_newest, const xl_addr *local,
                              const xl_addr *remote);
void xl_conn_issue_cids(xl_connection *);
void xl_conn_open_paths(xl_connection *);
void xl_conn_path_set_state(xl_connection *, xl_path *, xl_path_state, const char *why);
void xl_conn_path_validated(xl_connection *, xl_path *);
void xl_conn_path_closed(xl_connection *, xl_path *, const char *why);
void xl_conn_path_timer(xl_connection *, xl_path *);
bool xl_conn_take_dcid(xl_connection *, xl_path *); /* an unused CID of the peer; false: there is none */
void xl_conn_start_challenge(xl_connection *, xl_path *);
void xl_conn_start_rtt_probe(xl_connection *, xl_path *);
/* Number of a packet number space, to be kept in records: 0..2 the levels, 3 + path index a path's own. */
uint64_t xl_conn_space_number(const xl_connection *, const xl_space *);
xl_space *xl_conn_space_at(xl_connection *, uint64_t number);
bool xl_conn_has_healthy_path_beside(const xl_connection *, const xl_path *);

/* rebinding.c: what to do about a path's new address; true: an earlier one is in use again */
void xl_conn_path_rebind(xl_connection *, xl_path *, const xl_addr *local, const xl_addr *remote);
bool xl_conn_path_rebind_failed(xl_connection *, xl_path *);

/* migration.c; the candidate of a migration that is being probed is c->migrating_to, -1 otherwise */
void xl_conn_migration_timer(xl_connection *);
uint64_t xl_conn_migration_deadline(const xl_connection *);
/* Moves to p: congestion window and RTT start anew (RFC 9000 section 9.4), what was in flight is sent again. */
void xl_conn_migrate_to(xl_connection *, xl_path *, const char *why);
void xl_conn_migration_validated(xl_connection *, xl_path *);
/* A challenge on p was not answered in time. True: that was the business of a migration, and is settled. */
bool xl_conn_migration_unanswered(xl_connection *, xl_path *);
/* The last challenge was not. */
bool xl_conn_migration_probe_failed(xl_connection *, xl_path *);

/* path_status.c */
void xl_conn_path_ask(xl_connection *, xl_path *, xl_path_status, const char *why);
void xl_conn_path_apply_status(xl_connection *, xl_path *, const char *why);
uint64_t xl_conn_take_path_status(xl_connection *, const xl_frame *);
bool xl_conn_is_busy(const xl_connection *);
uint64_t xl_conn_standby_deadline(const xl_connection *);
void xl_conn_standby_timer(xl_connection *);

/* management.c */
uint64_t xl_conn_management_deadline(const xl_connection *);
void xl_conn_management_timer(xl_connection *);

/* builder.c: one packet into a datagram. */
typedef struct {
    xl_connection *c;
    xl_path *path;
    xl_space *space;
    xl_level level;
    xl_keys *keys;
    uint8_t *packet;
    size_t pn_offset, pn_len, length_offset;
    uint64_t pn;
    xl_writer w; /* payload; its end leaves room for the tag */
    uint8_t *payload;
    xl_sent_frame *frames, **frames_tail;
    bool ack_eliciting, has_padding;
    bool has_stream_data;
} xl_builder;

bool xl_builder_begin(xl_builder *, xl_connection *, xl_path *, xl_level, uint8_t *buf, size_t room);
bool xl_builder_is_empty(const xl_builder *);
size_t xl_builder_left(const xl_builder *);
/* Adds a record of a frame that is about to be written; NULL when out of memory: do not write it then. All kinds but
 * ACK make the packet ack-eliciting. */
xl_sent_frame *xl_builder_note(xl_builder *, xl_sf_kind, uint64_t id, uint64_t offset);
void xl_builder_pad_to(xl_builder *, size_t packet_bytes); /* whole protected packet at least this long */
/* Protects and registers the packet. Returns its length, 0 when nothing was written. */
size_t xl_builder_finish(xl_builder *);

/* transmit.c */
size_t xl_conn_transmit(xl_connection *, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now);

#endif
