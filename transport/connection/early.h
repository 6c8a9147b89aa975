/* 0-RTT (RFC 9001 section 4.6): a client that resumes a session sends before it has heard of the server, under what it
 * remembers of it; the server may answer before it has heard more. */
#ifndef XL_CONNECTION_EARLY_H
#define XL_CONNECTION_EARLY_H

#include "crypto/crypto.h"
#include "wire/transport_params.h"
#include "xlink/xlink.h"

typedef struct {
    xl_keys *keys;       /* of 0-RTT packets: a client's to write, a server's to read; NULL: none (any more) */
    bool is_offered;     /* client: 0-RTT packets may be, or were, sent */
    bool is_accepted;    /* by the server, or by us */
    uint64_t keep_until; /* server: late 0-RTT packets are taken until then; XL_NEVER at first */
    xl_transport_params remembered; /* client: the limits that it keeps to */
} xl_early;

int xl_conn_take_early_keys(xl_connection *, xl_keys *);
/* Client, after the ClientHello was made. */
void xl_conn_start_early(xl_connection *);
/* Server, after a message of the client was handled: begins to answer where 0-RTT data was accepted. */
void xl_conn_answer_early(xl_connection *);
bool xl_conn_may_write_early(const xl_connection *); /* client: 0-RTT packets may be sent now */
/* A server may send 1-RTT packets though the handshake is not complete. */
bool xl_conn_may_answer_early(const xl_connection *);
/* Client, once the handshake is complete: what the server made of it. May close the connection. */
void xl_conn_settle_early(xl_connection *);
/* The keys that open a 0-RTT packet; NULL: drop it. */
const xl_keys *xl_conn_early_read_keys(const xl_connection *);
/* Server, handshake complete: 0-RTT packets that are late are taken for three PTOs (RFC 9001 section 4.9.3). */
void xl_conn_limit_early_keys(xl_connection *);
void xl_conn_expire_early_keys(xl_connection *); /* that time is over: the keys are gone */
void xl_conn_drop_early_keys(xl_connection *);

#endif
