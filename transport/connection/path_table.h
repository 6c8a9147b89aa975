/* The table of paths: which one is meant, the state of one, a CID and a challenge for it. When paths are opened and
 * closed is the business of paths.h. */
#ifndef XL_CONNECTION_PATH_TABLE_H
#define XL_CONNECTION_PATH_TABLE_H

#include "path/path.h"

#define XL_SUSPECT_PTOS       2       /* consecutive PTOs after which a path is suspect */
#define XL_SUSPECT_PTO_CAP_US 1000000 /* a suspect path is probed at least this often */

/* Bytes of a datagram that both ends take: 1200 until the peer's transport parameters are known. */
uint64_t xl_conn_mtu(const xl_connection *);
/* A path can join these addresses: both are set, and of one IP version. */
bool xl_conn_addresses_match(const xl_addr *local, const xl_addr *remote);
/* The path is a new one, or may be: the search for its MTU begins at the size that every path carries. */
void xl_conn_restart_mtu_search(xl_connection *, xl_path *);
/* The same of all that is known of a network path: RTT, window, MTU, ECN (RFC 9000 sections 9.4 and 13.4.2). */
void xl_conn_path_forget_network(xl_connection *, xl_path *);
void xl_conn_apply_mtu(xl_connection *, xl_path *); /* the search has changed the size, perhaps */
xl_path *xl_conn_path_by_local_id(xl_connection *, uint64_t local_id);
xl_path *xl_conn_path_by_remote_id(xl_connection *, uint64_t remote_id);
/* Of several with these addresses the one in use, without multipath. */
xl_path *xl_conn_path_by_address(xl_connection *, const xl_addr *local, const xl_addr *remote);
bool xl_conn_has_healthy_path_beside(const xl_connection *, const xl_path *);
/* Whether control frames are left to another path: a probe on this one is unanswered, and none on that one. Only
 * without suspect paths, where nothing else takes them off a path that has gone dark: they have no copies. */
bool xl_conn_leaves_control_to_another(const xl_connection *, const xl_path *);
void xl_conn_path_set_state(xl_connection *, xl_path *, xl_path_state, const char *why);
/* An unused CID of the peer, in the dialect `ietf` of the path's ID; false: there is none. */
bool xl_conn_take_dcid(xl_connection *, xl_path *);
void xl_conn_start_challenge(xl_connection *, xl_path *);
void xl_conn_start_rtt_probe(xl_connection *, xl_path *);

#endif
