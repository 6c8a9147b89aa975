/* What send buffers take from the application. */
#ifndef XL_CONNECTION_ROOM_H
#define XL_CONNECTION_ROOM_H

#include "connection/streams.h"

/* A stream's buffer may hold what is in flight and, as long as it is not known what of it is lost, as much again: twice
 * the congestion windows, within the limits of the configuration. It never falls. */
void xl_conn_raise_send_limit(const xl_connection *, xl_stream *);
/* Bytes that a stream takes now. */
size_t xl_conn_send_room(const xl_connection *, const xl_stream *);
/* Bytes that its buffer will take when it takes `room` now, as far as the application has announced them and there is
 * credit: these, and as many in flight beside them as the congestion windows allow. */
size_t xl_conn_announced_bytes(const xl_connection *, const xl_stream *, size_t room);
void xl_conn_await_room(xl_connection *, xl_stream *); /* the application has more: XL_EVENT_STREAM_WRITABLE follows */
/* Tells the streams that wait for room and have some. */
void xl_conn_offer_room(xl_connection *);

/* The application has more, and is not asked for it before something is acknowledged or the peer gives credit. */
bool xl_conn_is_full(const xl_connection *, const xl_stream *);

#endif
