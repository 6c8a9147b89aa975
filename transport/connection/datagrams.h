/* DATAGRAM frames (RFC 9221): queues of datagrams to be sent and to be read. They are congestion controlled, but not
 * flow controlled, sent again or re-injected. */
#pragma once

#include "connection/builder.h"
#include "wire/frame.h"

typedef struct xl_queued_datagram {
    struct xl_queued_datagram *next;
    uint64_t id; /* the application's, of a datagram to be sent */
    size_t len;
    uint8_t data[];
} xl_queued_datagram;

typedef struct {
    xl_queued_datagram *head, **tail; /* tail: NULL while nothing was ever queued */
    size_t bytes;                     /* including the overhead of each entry */
} xl_datagram_queue;

typedef struct {
    xl_datagram_queue out, in;
    bool is_told; /* XL_EVENT_DATAGRAM was emitted, and not everything was read since */
} xl_datagrams;

/* Writes as many as fit, in order. A datagram that no packet of the path can hold any more is lost. */
void xl_conn_put_datagrams(xl_builder *);
/* 0 or the transport error to close with. */
uint64_t xl_conn_take_datagram(xl_connection *, const xl_frame *);
void xl_conn_free_datagrams(xl_connection *);
