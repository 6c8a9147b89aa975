/* Connection IDs of ours: made by the endpoint, announced to the peer. */
#ifndef XL_CONNECTION_OWN_CIDS_H
#define XL_CONNECTION_OWN_CIDS_H

#include "xlink/xlink.h"

/* One more, known to the endpoint and in the table of local CIDs. 0 or XL_ERR_*. */
int xl_conn_add_cid(xl_connection *);
/* As many as the peer takes. */
void xl_conn_issue_cids(xl_connection *);

#endif
