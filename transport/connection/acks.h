/* Acknowledgement, loss and probe timeout (RFC 9002) of what was sent. */
#ifndef XL_CONNECTION_ACKS_H
#define XL_CONNECTION_ACKS_H

#include "crypto/crypto.h"
#include "path/path.h"
#include "wire/frame.h"
#include "wire/packet.h"

/* 0 or the transport error to close with. */
uint64_t xl_conn_take_ack(xl_connection *, xl_space *, xl_level, xl_path *arrived_on, const xl_ack_frame *);
/* Into the qlog: what of the path's RTT, window and pacing has changed. */
void xl_conn_log_metrics(xl_connection *, xl_path *);
void xl_conn_detect_losses(xl_connection *, xl_space *, xl_level);
void xl_conn_probe_timeout(xl_connection *, xl_path *);
/* Everything in flight on the path goes back to its streams. The window is not charged: the caller decides. */
void xl_conn_give_up_in_flight(xl_connection *, xl_path *);
/* The same for all of a packet number space. */
void xl_conn_lose_space(xl_connection *, xl_space *, xl_level);
void xl_conn_drop_space(xl_connection *, xl_space *);
/* A space in which nothing was sent; its first packet number is 0, or random where the configuration says so. */
void xl_conn_init_space(xl_connection *, xl_space *);
/* Another path takes the place of this one, which shares its packet number space with others. */
void xl_conn_forget_sent(xl_connection *, const xl_path *);
/* Number of a packet number space, to be kept in records: 0..2 the levels, 3 + local_id the own one of a path that has
 * one. Another path in the same place has another number. */
uint64_t xl_conn_space_number(const xl_connection *, const xl_space *);

#endif
