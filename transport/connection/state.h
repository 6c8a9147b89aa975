/* Functions shared by the parts of a connection: its state, its end, its endpoint, its longest PTO. */
#pragma once

#include "crypto/random.h"
#include "stream/budget.h"
#include "wire/packet.h"
#include "xlink/xlink.h"

typedef enum { XL_CONN_HANDSHAKE, XL_CONN_OPEN, XL_CONN_CLOSING, XL_CONN_DRAINING, XL_CONN_CLOSED } xl_conn_state;

#define XL_NEW_TOKEN_BYTES 37

/* Callbacks of a connection to its endpoint. */
typedef struct {
    xl_endpoint *endpoint;
    void (*event)(xl_endpoint *, const xl_event *);
    void (*make_cid)(xl_endpoint *, xl_drbg_stream *, xl_cid *); /* makes one that is not in use */
    int (*cid_added)(xl_endpoint *, const xl_cid *, xl_connection *);
    void (*cid_removed)(xl_endpoint *, const xl_cid *);
    void (*wake)(xl_endpoint *, xl_connection *);           /* it may have something to transmit */
    void (*touched)(xl_endpoint *, xl_connection *);        /* its state may change, and with it its next timeout */
    void (*tokens_changed)(xl_endpoint *, xl_connection *); /* xl_conn_reset_tokens() may have changed */
    int (*reset_token)(const xl_endpoint *, const xl_cid *, uint8_t token[16]); /* 0 or XL_ERR_CRYPTO: there is none */
    int (*make_token)(xl_endpoint *, const xl_addr *client, uint8_t token[XL_NEW_TOKEN_BYTES]); /* 0 or XL_ERR_CRYPTO */
    xl_budget_pool *send_pool;            /* for the send buffers of all connections */
    const struct xl_foresight *foresight; /* in a simulator (endpoint/foresight.h); NULL elsewhere */
} xl_connection_hooks;

typedef struct {
    bool is_pending; /* CONNECTION_CLOSE is due */
    bool is_application;
    uint64_t code;
    char words[96];
    xl_close_reason reason;    /* in XL_EVENT_CLOSED at the end of a closing period */
    uint64_t frame_type;       /* of the received frame that caused the error; 0 = none */
    uint64_t packets_received; /* since the close; each power of two is answered */
    uint64_t deadline;         /* end of the connection */
    bool is_reported;          /* XL_EVENT_CLOSED was emitted */
} xl_closing;

/* The peer or we broke a rule: CONNECTION_CLOSE with this transport error follows. */
void xl_conn_fail(xl_connection *, uint64_t transport_error, const char *reason);
/* Ends the connection without notice to the peer: nothing more is sent. `words` are for the log and the event. */
void xl_conn_abort(xl_connection *, xl_close_reason, const char *words);
/* The peer has closed the connection: later packets are ignored for three PTOs (RFC 9000 section 10.2.2). `words`: as
 * above. */
void xl_conn_drain(xl_connection *, xl_close_reason, const char *words);
/* closing.deadline has passed. */
void xl_conn_end_closing(xl_connection *);
bool xl_conn_is_live(const xl_connection *); /* handshake or open */

void xl_conn_emit(xl_connection *, xl_event);
void xl_conn_wake(xl_connection *);
/* Every call that enters a connection from outside and may change its state begins with one of these, because the
 * endpoint asks for a connection's next timeout only after it was touched. The sanitizers' build checks that. */
void xl_conn_touch(xl_connection *);
void xl_conn_enter(xl_connection *, uint64_t now); /* the same, and sets the time */

uint64_t xl_conn_peer_ack_delay_us(const xl_connection *);
uint64_t xl_conn_max_pto(const xl_connection *);
void xl_conn_restart_idle(xl_connection *, uint64_t now);
