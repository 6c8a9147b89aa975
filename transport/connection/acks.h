/* Acknowledgement, loss and probe timeout (RFC 9002) of sent packets. */
#pragma once

#include "path/path.h"
#include "wire/frame.h"

/* Returns 0 or the transport error to close with. */
uint64_t xl_conn_take_ack(xl_connection *, xl_space *, xl_path *arrived_on, const xl_ack_frame *);
/* Logs what has changed of the path's RTT, window and pacing. */
void xl_conn_log_metrics(xl_connection *, xl_path *);
void xl_conn_detect_losses(xl_connection *, xl_space *);
void xl_conn_probe_timeout(xl_connection *, xl_path *);
/* Returns everything in flight on the path to its streams, as RFC 9002 section 6.2.4 allows instead of a probe. Does
 * not reduce the window: the caller decides. */
void xl_conn_give_up_in_flight(xl_connection *, xl_path *);
/* The same in one packet number space. path: index; -1: of any path. */
void xl_conn_lose_space(xl_connection *, xl_space *, int path);
void xl_conn_drop_space(xl_connection *, xl_space *);
/* Initialises a space. Its first packet number is 0, or random if the configuration says so. */
void xl_conn_init_space(xl_connection *, xl_space *);
/* Forgets what was sent on the path in the connection's spaces, because another path takes its index. */
void xl_conn_forget_sent(xl_connection *, const xl_path *);
/* Number of a packet number space, for records: 0 to 2 for the levels, 3 + local path ID for the own space of a path.
 * Another path with the same index has another number. */
uint64_t xl_conn_space_number(const xl_connection *, const xl_space *);
