/* The QUIC schemes that are compared, by name, as settings of the transport. Client and server use the same table. */
#ifndef HTTP_QUIC_SCHEME_H
#define HTTP_QUIC_SCHEME_H

#include <stdbool.h>

#include "xlink/xlink.h"

/* QUIC payload of a UDP datagram on links with an MTU of 1500 bytes, IPv6 headers included. */
#define QUIC_UDP_PAYLOAD_BYTES 1452

/* "sp", "cm", "vanilla-mp", "xlink", "xlink+"; NULL terminated. */
extern const char *const quic_scheme_names[];

/* Sets what distinguishes the scheme and leaves the rest of the config alone. False: no such scheme. */
bool quic_scheme_apply(const char *name, xl_config *);
/* Sets the scheduler and the congestion controller of what this end sends; NULL: the scheme's own. False, with one
 * sentence, without its full stop, in error that lists the valid names: there is no such one. */
bool quic_scheme_override(const char *scheduler, const char *congestion, xl_scheme *, char *error, size_t error_cap);
/* Whether it uses several paths at a time. */
bool quic_scheme_is_multipath(const char *name);
/* Whether a client of this scheme uses more than its first path. */
bool quic_scheme_uses_all_paths(const char *name);

/* After so long without an answer the client's handshake is tried on the next path as well, µs; 0: it is not. */
uint64_t quic_scheme_race_us(const char *name);

#endif
