/* Passes datagrams that reached the wrong worker on to the right one, over Unix datagram sockets. The kernel chooses
 * the worker by each datagram (lib/driver/reuseport.c), but for datagrams of one segmented send, or that a device
 * coalesced, by the first one only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define FORWARD_DATAGRAM_MAX 65535

/* Opens a socket pair: datagrams sent to outbox arrive at inbox. False with errno set. */
bool forward_open(int *inbox, int *outbox);
/* False: the other worker's queue is full, and the datagram is lost. */
bool forward_send(int outbox, const xl_datagram *, const uint8_t *data);
/* Takes the next datagram and marks it as forwarded. False: there is none. */
bool forward_receive(int inbox, xl_datagram *, uint8_t data[FORWARD_DATAGRAM_MAX]);
