/* Which Initial packets begin a connection: Retry, tokens, limits (RFC 9000 section 8.1). */
#ifndef XL_ENDPOINT_ADMISSION_H
#define XL_ENDPOINT_ADMISSION_H

#include "endpoint/endpoint.h"

/* True: a connection is to be made for this Initial, for which there is none; otherwise it has been answered. */
bool xl_endpoint_admit(xl_endpoint *, const xl_datagram *in, const xl_packet_header *, uint64_t now, xl_cid *odcid,
                       bool *is_retried, bool *is_proven);
/* A client is not turned away for want of memory to count it. */
void xl_endpoint_count_client(xl_endpoint *, xl_connection *, const xl_addr *remote, bool is_proven);

#endif
