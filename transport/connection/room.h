/* Room in send buffers for the application's data. */
#pragma once

#include "connection/streams.h"
#include "path/path.h"

/* Raises the limit of a stream's buffer to twice the congestion windows, within the limits of the configuration: what
 * is in flight, and as much again until it is known what of it is lost. The limit never falls. */
void xl_conn_raise_send_limit(const xl_connection *, xl_stream *);
/* Bytes that a stream accepts now. */
size_t xl_conn_send_room(const xl_connection *, const xl_stream *);
/* Bytes to allocate at once if the stream accepts `room` now: those that the application has announced and for which
 * there is credit, at most `room` and the congestion windows of the slower paths together. */
size_t xl_conn_announced_bytes(const xl_connection *, const xl_stream *, size_t room);
/* Whether an application waits to write what could be sent on this path: of a fast one little is held. */
bool xl_conn_has_more_for(const xl_connection *, const xl_path *);
void xl_conn_await_room(xl_connection *, xl_stream *); /* XL_EVENT_STREAM_WRITABLE follows */
/* Wakes the streams that wait for room and have some. */
void xl_conn_offer_room(xl_connection *);

/* Whether the application has more, and is not asked for it before something is acknowledged or the peer grants
 * credit. */
bool xl_conn_is_full(const xl_connection *, const xl_stream *);
