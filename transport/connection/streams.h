/* Streams of a connection: their table, flow control, the bytes that each has in flight, the public API (RFC 9000
 * sections 2 to 4). */
#pragma once

#include "connection/records.h"
#include "stream/budget.h"
#include "stream/flow.h"
#include "stream/receive.h"
#include "stream/send.h"

typedef struct {
    xl_sent_frame *head, *tail;
    uint64_t bytes;
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
    uint64_t carried_to[XL_MAX_PATHS]; /* redundant scheduler: offset up to which that path has carried the stream */
    uint8_t fin_carried;               /* bit i: path i carried the FIN */
    uint64_t reset_code, stop_code;
    bool peer_reset;                         /* RESET_STREAM was received: the receiving half has ended */
    bool recv_done;                          /* the application has read the end, or nobody will */
    bool readable_queued;                    /* an event was emitted, and not everything was read since */
    size_t asked;                            /* bytes requested by xl_stream_reserve(), which may have given fewer */
    bool writable_wanted;                    /* the application waits for XL_EVENT_STREAM_WRITABLE */
    uint64_t expected;                       /* total bytes that the application has announced; 0: none */
    xl_unacked_queue unacked[XL_MAX_PATHS];  /* in flight on that path and not yet re-injected, in order of sending */
    struct xl_stream *send_prev, *send_next; /* list of streams that may have something to send, by priority, id */
    bool in_send_list;
} xl_stream;

/* Index [2]: 0 bidirectional, 1 unidirectional. */
typedef struct {
    xl_stream **at; /* by ID */
    size_t count, cap;
    size_t marked; /* streams with a marked frame */
    xl_stream *send_head;
    xl_flow_out opened[2];      /* ours: number opened, of those that the peer allows us to open */
    uint64_t opened_by_peer[2]; /* number */
    uint64_t max_local[2];      /* limit announced to the peer */
    uint64_t closed_by_peer[2]; /* number of the peer's streams that are done; raises max_local */
    bool max_pending[2];
    bool data_blocked_pending, blocked_pending[2];
    bool max_data_pending;
    bool control_dirty; /* some stream may have a control frame to send */
    xl_flow_out flow_out;
    xl_flow_in flow_in;
    xl_budget budget; /* of all send buffers */
} xl_streams;

xl_stream *xl_conn_stream(const xl_connection *, uint64_t id);
/* Order of sending: by priority, then by ID. */
static inline bool xl_conn_is_sent_before(const xl_stream *a, const xl_stream *b) {
    return a->priority != b->priority ? a->priority < b->priority : a->id < b->id;
}
/* Applies the stream limits of the peer's transport parameters. */
void xl_conn_apply_stream_limits(xl_connection *);
/* Finds the stream of a received frame; opens the peer's. NULL with *error = 0: the stream is gone, ignore the
 * frame. */
xl_stream *xl_conn_stream_for_frame(xl_connection *, uint64_t id, bool needs_recv, uint64_t *error);
void xl_conn_stream_settle(xl_connection *, xl_stream *); /* removes the stream when everything is done */
/* Tells the peer, once for each limit, that flow control holds back what the stream has to send (RFC 9000, 4.1). */
void xl_conn_note_blocked(xl_connection *, xl_stream *);
void xl_conn_notify_readable(xl_connection *, xl_stream *);
/* Whether we have reset the stream: RESET_STREAM is due, or was sent. */
static inline bool xl_conn_is_reset(const xl_stream *s) {
    return s->reset_pending || s->reset_sent;
}
void xl_conn_reset_sending(xl_connection *, xl_stream *, uint64_t error_code);
void xl_conn_free_streams(xl_connection *);
/* Counts bytes as read: the connection's credit for them returns to the peer. */
void xl_conn_grant_credit(xl_connection *, uint64_t bytes);
/* Nobody will read the stream: discards what has arrived. If that includes the end, the stream may be gone. */
void xl_conn_discard_unread(xl_connection *, xl_stream *);
/* A ring has grown: shrinks those of other streams, whose credit has returned to the peer. */
void xl_conn_shrink_beside(xl_connection *, const xl_stream *);
bool xl_conn_expects_data(const xl_connection *);
/* frame_first: a packet of the marked frame goes before packets of the rest; otherwise each goes to the end. */
void xl_conn_unacked_push(xl_stream *, xl_sent_frame *, bool frame_first);
void xl_conn_unacked_remove(xl_stream *, xl_sent_frame *);
