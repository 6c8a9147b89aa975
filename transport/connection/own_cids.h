/* Connection IDs of ours: made by the endpoint, announced to the peer. */
#ifndef XL_CONNECTION_OWN_CIDS_H
#define XL_CONNECTION_OWN_CIDS_H

#include "path/cids.h"
#include "xlink/xlink.h"

/* One more, known to the endpoint and in this table of local CIDs. 0 or XL_ERR_*. */
int xl_conn_add_cid(xl_connection *, xl_cids *);
/* As many as the peer takes; in the dialect `ietf` one for each path ID that may still be opened, and one to spare for
 * each that is in use (RFC 10069 section 3.2.1). Where a path may change its connection ID, one is always to spare. */
void xl_conn_issue_cids(xl_connection *);
/* An authentic packet carried this one; local_id: its path ID (dialect `ietf`). */
void xl_conn_own_cid_seen(xl_connection *, uint64_t local_id, uint64_t sequence);
/* None of this table is known to the endpoint any more. */
void xl_conn_withdraw_cids(xl_connection *, xl_cids *);

#endif
