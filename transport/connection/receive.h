/* Incoming datagrams. */
#pragma once

#include "path/path_ids.h"
#include "wire/packet.h"
#include "xlink/xlink.h"

#define XL_RESET_MIN_BYTES  21 /* size of the smallest stateless reset (RFC 9000 section 10.3) */
#define XL_RESET_TOKENS_MAX ((XL_PATH_IDS_MAX + 1) * XL_CIDS_MAX)

/* first: header of the datagram's first packet, if it was parsed already; else NULL. */
void xl_conn_receive(xl_connection *, const xl_datagram *, const xl_packet_header *first, uint8_t *data, uint64_t now);
/* The stateless reset tokens by which the peer may end the connection: those of its connection IDs in use (RFC 9000
 * section 10.3.1). Fills `out` and returns their number. */
size_t xl_conn_reset_tokens(const xl_connection *, const uint8_t *out[XL_RESET_TOKENS_MAX]);
/* Whether the datagram ends with one of them. */
bool xl_conn_is_stateless_reset(const xl_connection *, const uint8_t *datagram, size_t len);
