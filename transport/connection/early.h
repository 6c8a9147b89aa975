/* 0-RTT (RFC 9001 section 4.6): a client that resumes a session sends before it has received anything, under the
 * server's remembered parameters. The server may answer before the handshake is complete. */
#pragma once

#include "crypto/crypto.h"
#include "wire/transport_params.h"
#include "xlink/xlink.h"

typedef struct {
    xl_keys *keys;                  /* keys of 0-RTT packets: a client writes, a server reads; NULL: none (any more) */
    bool is_offered;                /* client: 0-RTT packets may be, or were, sent */
    bool is_accepted;               /* by the server, or by us */
    uint64_t keep_until;            /* server: late 0-RTT packets are accepted until then; XL_NEVER at first */
    xl_transport_params remembered; /* client: the limits that it obeys */
} xl_early;

int xl_conn_take_early_keys(void *connection, xl_keys *); /* xl_tls_callbacks.early_keys */
/* Client, after the ClientHello was made. */
void xl_conn_start_early(xl_connection *);
/* Server, after a message of the client was processed: begins to answer if 0-RTT data was accepted. */
void xl_conn_answer_early(xl_connection *);
bool xl_conn_may_write_early(const xl_connection *); /* client: 0-RTT packets may be sent now */
/* Whether a server may send 1-RTT packets before the handshake is complete. */
bool xl_conn_may_answer_early(const xl_connection *);
/* The handshake is complete. A client applies what the server decided, and may close the connection. A server accepts
 * late 0-RTT packets for three more PTOs (RFC 9001 section 4.9.3). */
void xl_conn_settle_early(xl_connection *);
void xl_conn_expire_early_keys(xl_connection *); /* drops the keys after that time */
/* The keys that open a 0-RTT packet; NULL: drop it. */
const xl_keys *xl_conn_early_read_keys(const xl_connection *);
void xl_conn_drop_early_keys(xl_connection *);
