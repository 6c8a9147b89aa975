/* The QUIC version of a connection. Version 1 and version 2 (RFC 9369) are compatible, and a server changes from the
 * client's first choice to the other one within the handshake (RFC 9368). */
#pragma once

#include "crypto/crypto.h"

/* Client: chooses the version of the session that is resumed, if both versions are spoken. */
void xl_conn_choose_first_version(xl_connection *, const char *server_name);
/* Adds version information to our transport parameters if more than version 1 is spoken. */
void xl_conn_put_version_information(xl_connection *);
/* The peer's parameters are known: a server chooses, a client checks. 0 or the transport error to close with. */
uint64_t xl_conn_agree_on_version(xl_connection *);
/* Makes the Initial keys of a version. Returns those to read with; NULL, also in *write: failed. */
xl_keys *xl_conn_make_initial_keys(const xl_connection *, uint32_t version, xl_keys **write);
/* Returns the keys that open this Initial packet; NULL: none. *changes: they are of a version that the server has
 * chosen, and the packet, if it is authentic, changes the version. */
const xl_keys *xl_conn_initial_read_keys(xl_connection *, uint32_t version, bool *changes);
/* Client: such a packet was authentic. */
void xl_conn_follow_version(xl_connection *, uint32_t version);
void xl_conn_drop_original_keys(xl_connection *);
