/* A datagram in: decryption. */
#ifndef XL_CONNECTION_RECEIVE_H
#define XL_CONNECTION_RECEIVE_H

#include "xlink/xlink.h"

void xl_conn_receive(xl_connection *, const xl_datagram *, uint8_t *data, uint64_t now);

#endif
