/* The table of paths: finding a path, its state, a CID and a challenge for it. paths.h opens and closes paths. */
#pragma once

#include "path/cids.h"
#include "path/path.h"

#define XL_SUSPECT_PTOS       2       /* consecutive PTOs after which a path is suspect */
#define XL_SUSPECT_PTO_CAP_US 1000000 /* a suspect path is probed at least this often */

/* Whether a path can join these addresses: both are set, and of one IP version. */
bool xl_conn_addresses_match(const xl_addr *local, const xl_addr *remote);
/* The path is new, or may be: restarts the search for its MTU at the size that every path carries. */
void xl_conn_restart_mtu_search(xl_connection *, xl_path *);
/* The same for all that is known of a network path: RTT, window, MTU, ECN (RFC 9000 sections 9.4 and 13.4.2). */
void xl_conn_path_forget_network(xl_connection *, xl_path *);
void xl_conn_apply_mtu(xl_connection *, xl_path *); /* adopts the size that the search has found */
xl_path *xl_conn_path_by_local_id(xl_connection *, uint64_t local_id);
xl_path *xl_conn_path_by_remote_id(xl_connection *, uint64_t remote_id);
/* Of several paths with these addresses, without multipath, the one in use. */
xl_path *xl_conn_path_by_address(xl_connection *, const xl_addr *local, const xl_addr *remote);
bool xl_conn_has_healthy_path_beside(const xl_connection *, const xl_path *);
/* Whether control frames are left to another path: a probe on this one is unanswered, and none on that one. Only if
 * xl_scheme.suspect is off: then nothing else removes them from a path that has gone dark, and they have no copies. */
bool xl_conn_leaves_control_to_another(const xl_connection *, const xl_path *);
void xl_conn_log_path(xl_connection *, const xl_path *, const char *event, const char *why);
void xl_conn_path_set_state(xl_connection *, xl_path *, xl_path_state, const char *why);
/* The CIDs of a path ID (dialect `ietf`) or of the connection. NULL: the path ID is used up, or, for the peer's, was
 * abandoned. */
xl_cids *xl_conn_local_cids(xl_connection *, uint64_t path_id);
xl_cids *xl_conn_remote_cids(xl_connection *, uint64_t path_id);
/* Takes an unused CID of the peer, in the dialect `ietf` of the path's ID. False: there is none. */
bool xl_conn_take_dcid(xl_connection *, xl_path *);
/* The same, and retires the present one (RFC 9000 section 9.5). */
bool xl_conn_change_dcid(xl_connection *, xl_path *);
void xl_conn_start_challenge(xl_connection *, xl_path *);
void xl_conn_start_rtt_probe(xl_connection *, xl_path *);
