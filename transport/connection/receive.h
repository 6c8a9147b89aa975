/* A datagram in: decryption. */
#ifndef XL_CONNECTION_RECEIVE_H
#define XL_CONNECTION_RECEIVE_H

#include "wire/packet.h"
#include "xlink/xlink.h"

/* first: the header of the datagram's first packet, where it was parsed already; else NULL. */
void xl_conn_receive(xl_connection *, const xl_datagram *, const xl_packet_header *first, uint8_t *data, uint64_t now);

#endif
