/* Our connection IDs: made by the endpoint, announced to the peer. */
#pragma once

#include "path/cids.h"
#include "xlink/xlink.h"

/* Adds a CID to this table and to the endpoint. Returns 0 or XL_ERR_*. */
int xl_conn_add_cid(xl_connection *, xl_cids *);
/* Issues as many as the peer accepts; in the dialect `ietf` one for each path ID that may still be opened, and a spare
 * one for each that is in use (RFC 10069 section 3.2.1). If a path may change its connection ID, there is always a
 * spare one. */
void xl_conn_issue_cids(xl_connection *);
/* An authentic packet carried this CID. local_id: its path ID (dialect `ietf`). */
void xl_conn_own_cid_seen(xl_connection *, uint64_t local_id, uint64_t sequence);
/* Removes all CIDs of this table from the endpoint. */
void xl_conn_withdraw_cids(xl_connection *, xl_cids *);
