/* Datagrams that reached the wrong worker, handed on over Unix datagram sockets: a safety net. The kernel's choice is
 * made for each datagram (lib/driver/reuseport.c); but several that were sent in one segmented send, or that a
 * device coalesced, are looked at by the first one only. */
#ifndef SERVER_FORWARD_H
#define SERVER_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define FORWARD_DATAGRAM_MAX 65535

/* A pair of ends: what is sent to outbox comes out of inbox. False with errno set. */
bool forward_open(int *inbox, int *outbox);
/* False when the other worker has no room: the datagram is lost, as in any full queue. */
bool forward_send(int outbox, const xl_datagram *, const uint8_t *data);
/* The next one, its head marked as forwarded; false when there is none now. */
bool forward_receive(int inbox, xl_datagram *, uint8_t data[FORWARD_DATAGRAM_MAX]);

#endif
