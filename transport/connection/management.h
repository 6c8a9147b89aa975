/* Automatic path management: paths stand by, and are abandoned, by themselves. */
#ifndef XL_CONNECTION_MANAGEMENT_H
#define XL_CONNECTION_MANAGEMENT_H

#include "xlink/xlink.h"

uint64_t xl_conn_management_deadline(const xl_connection *);
void xl_conn_management_timer(xl_connection *);

#endif
