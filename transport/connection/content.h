/* What the next packet on a path carries. Choosing the path is transmit.c's and the scheduler's business. */
#ifndef XL_CONNECTION_CONTENT_H
#define XL_CONNECTION_CONTENT_H

#include "connection/connection.h"

/* The path on which acknowledgements of packets received on p go back (paper section 5.3). */
const xl_path *xl_content_ack_path(const xl_connection *, const xl_path *p);
void xl_content_put_acks(xl_builder *);
bool xl_content_has_control(const xl_connection *);
void xl_content_put_control(xl_builder *);
/* New data, lost data or a re-injection that may go onto this path now. */
bool xl_content_has_stream_data(xl_connection *, const xl_path *onto);
void xl_content_put_streams(xl_builder *);
/* Whether any stream has something to send, on whatever path. */
bool xl_content_has_unsent(const xl_connection *);
/* What schedulers with `wants_backlog` look at. */
void xl_content_fill_backlog(const xl_connection *, xl_scheduler_view *);
void xl_content_put_qoe(xl_builder *); /* qoe.c */
void xl_content_put_ping(xl_builder *);
/* Only acknowledgements went out on this path for a while: ask for one in return (RFC 9000 section 13.2.4). */
bool xl_content_wants_ping(const xl_builder *);

#endif
