/* The list of connections that may have something to send, in the order in which they take turns. */
#ifndef XL_ENDPOINT_READY_H
#define XL_ENDPOINT_READY_H

#include "endpoint/endpoint.h"

/* At the end; nothing happens where it is in the list already. */
void xl_ready_add(xl_endpoint *, xl_connection *);
void xl_ready_remove(xl_endpoint *, xl_connection *);
/* The first one, out of the list; NULL: there is none. */
xl_connection *xl_ready_take(xl_endpoint *);

#endif
