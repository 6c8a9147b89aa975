/* Connections that may have something to send, in the order of their turns. */
#pragma once

#include "endpoint/endpoint.h"

/* Appends the connection, unless it is in the list already. */
void xl_ready_add(xl_endpoint *, xl_connection *);
void xl_ready_remove(xl_endpoint *, xl_connection *);
/* Removes and returns the first connection; NULL: the list is empty. */
xl_connection *xl_ready_take(xl_endpoint *);
