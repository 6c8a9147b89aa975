/* The server's preferred address (RFC 9000 section 9.6). */
#ifndef XL_CONNECTION_PREFERRED_H
#define XL_CONNECTION_PREFERRED_H

#include "wire/transport_params.h"
#include "xlink/xlink.h"

/* Server, before its transport parameters are encoded: the addresses of the configuration, and a connection ID. 0 or a
 * negative xl_error. */
int xl_conn_offer_preferred_address(xl_connection *);
/* Client: the connection ID that belongs to the address is one of the peer's, with the sequence number 1. 0 or the
 * transport error to close with. */
uint64_t xl_conn_learn_preferred_address(xl_connection *);
/* Client, when the handshake is confirmed: validates the address of its own IP version, and moves there. */
void xl_conn_follow_preferred_address(xl_connection *);

#endif
