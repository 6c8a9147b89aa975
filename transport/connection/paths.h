/* Paths: opening, validation, closing. */
#pragma once

#include "connection/frames.h"
#include "path/path.h"

xl_path *xl_conn_path_new(xl_connection *, const xl_addr *local, const xl_addr *remote, xl_technology);
/* Finds the path of a 1-RTT packet by its header alone, and changes nothing. NULL: drop the packet or, if *may_open,
 * call the second function once the packet is authenticated. That opens a path; NULL: there can be no further one. */
xl_path *xl_conn_path_for_packet(xl_connection *, uint64_t local_id, const xl_addr *local, const xl_addr *remote,
                                 bool *may_open);
xl_path *xl_conn_path_for_authentic_packet(xl_connection *, uint64_t local_id, const xl_addr *local,
                                           const xl_addr *remote);
/* Call it after a packet was authenticated: follows address changes of the peer (NAT rebinding, migration). */
void xl_conn_path_packet_seen(xl_connection *, const xl_packet_context *, bool is_probing);
/* Gives a CID of the peer to whatever waits for one: a client's registered paths, and paths that the peer opened. */
void xl_conn_open_paths(xl_connection *);
void xl_conn_path_validated(xl_connection *, xl_path *);
/* error: the error code of PATH_ABANDON, in the dialect `ietf`. */
void xl_conn_path_closed(xl_connection *, xl_path *, uint64_t error, const char *why);
/* The challenge was not answered in time: repeats it, or gives the path up. */
void xl_conn_path_timer(xl_connection *, xl_path *);
