/* Which Initial packets begin a connection: Retry, tokens, limits (RFC 9000 section 8.1). */
#pragma once

#include "endpoint/endpoint.h"

/* Decides on an Initial without a connection. True: make one. False: the Initial was answered, or is dropped.
 * is_retried: it has a token of our Retry; *odcid is then the CID before the Retry. is_proven: a token proves the
 * client's address. */
bool xl_endpoint_admit(xl_endpoint *, const xl_datagram *in, const xl_packet_header *, uint64_t now, xl_cid *odcid,
                       bool *is_retried, bool *is_proven);
/* Counts the connection for its client. Without memory for that the client is served, but not counted. */
void xl_endpoint_count_client(xl_endpoint *, xl_connection *, const xl_addr *remote, bool is_proven);
