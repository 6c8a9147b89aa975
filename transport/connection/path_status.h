/* PATH_STATUS, and probes of standby paths. */
#pragma once

#include "path/path.h"
#include "wire/frame.h"

void xl_conn_path_ask(xl_connection *, xl_path *, xl_path_status, const char *why);
uint64_t xl_conn_take_path_status(xl_connection *, const xl_frame *); /* 0 or the transport error to close with */
/* Whether something is in flight or expected. Only then is a path kept ready. */
bool xl_conn_is_busy(const xl_connection *);
uint64_t xl_conn_standby_deadline(const xl_connection *);
void xl_conn_standby_timer(xl_connection *);
