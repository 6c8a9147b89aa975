/* Outgoing datagrams. */
#pragma once

#include "xlink/xlink.h"

/* Returns the datagram's length, 0 if there is nothing to send now. */
size_t xl_conn_transmit(xl_connection *, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now);
