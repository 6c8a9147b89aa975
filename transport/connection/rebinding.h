/* A path whose packets come from a new address: a NAT has given it another binding (RFC 9000 section 9.3). */
#ifndef XL_CONNECTION_REBINDING_H
#define XL_CONNECTION_REBINDING_H

#include "path/path.h"

void xl_conn_path_rebind(xl_connection *, xl_path *, const xl_addr *local, const xl_addr *remote);
/* The new address did not answer. True: an earlier one is in use again. */
bool xl_conn_path_rebind_failed(xl_connection *, xl_path *);

#endif
