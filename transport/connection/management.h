/* Automatic path management: standby and abandonment of paths. */
#pragma once

#include "xlink/xlink.h"

uint64_t xl_conn_management_deadline(const xl_connection *);
void xl_conn_management_timer(xl_connection *);
