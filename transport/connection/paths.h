/* Paths: opening, validation, closing. */
#ifndef XL_CONNECTION_PATHS_H
#define XL_CONNECTION_PATHS_H

#include "connection/frames.h"
#include "path/path.h"

xl_path *xl_conn_path_new(xl_connection *, const xl_addr *local, const xl_addr *remote, xl_technology);
/* The path that a 1-RTT packet arrived on, by its header alone: changes nothing. NULL: drop the packet, or, with
 * *may_open, ask again by the second function once the packet was authenticated. That one opens a path, and gives NULL
 * where there can be no further one. */
xl_path *xl_conn_path_for_packet(xl_connection *, uint64_t local_id, const xl_addr *local, const xl_addr *remote,
                                 bool *may_open);
xl_path *xl_conn_path_for_authentic_packet(xl_connection *, uint64_t local_id, const xl_addr *local,
                                           const xl_addr *remote);
/* After a packet was authenticated: address changes of the peer (NAT rebinding, migration). */
void xl_conn_path_packet_seen(xl_connection *, const xl_packet_context *, bool is_probing, bool is_newest,
                              const xl_addr *local, const xl_addr *remote);
/* Whatever waits for a CID of the peer gets one: a client's registered paths, and paths that the peer opened. */
void xl_conn_open_paths(xl_connection *);
void xl_conn_path_validated(xl_connection *, xl_path *);
/* error: what PATH_ABANDON says of it in the dialect `ietf`. */
void xl_conn_path_closed(xl_connection *, xl_path *, uint64_t error, const char *why);
/* The challenge was not answered in time: again, or give the path up. */
void xl_conn_path_timer(xl_connection *, xl_path *);

#endif
