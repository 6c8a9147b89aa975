/* A path whose packets come from a new address: a NAT has given it another binding (RFC 9000 section 9.3). */
#pragma once

#include "path/path.h"

void xl_conn_path_rebind(xl_connection *, xl_path *, const xl_addr *local, const xl_addr *remote);
/* The new address did not answer. Returns whether an earlier one is in use again. */
bool xl_conn_path_rebind_failed(xl_connection *, xl_path *);

/* Whether another path has proven p's pair of addresses (RFC 10069 section 3.1). Bytes from there count for that path,
 * so p would have no allowance of its own. */
bool xl_conn_is_proven_elsewhere(const xl_connection *, const xl_path *p);
/* p has proven its addresses, and thereby those of all paths that share them. */
void xl_conn_prove_others(xl_connection *, const xl_path *p);
