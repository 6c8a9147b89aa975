/* The server's preferred address (RFC 9000 section 9.6). */
#pragma once

#include "xlink/xlink.h"

/* Server, before its transport parameters are encoded: adds the configured addresses and a connection ID. Returns 0 or
 * a negative xl_error. */
int xl_conn_offer_preferred_address(xl_connection *);
/* Client: adds the connection ID of the preferred address to the peer's, with sequence number 1. Returns 0 or the
 * transport error to close with. */
uint64_t xl_conn_learn_preferred_address(xl_connection *);
/* Client, when the handshake is confirmed: validates the address of its own IP version and moves there. */
void xl_conn_follow_preferred_address(xl_connection *);
