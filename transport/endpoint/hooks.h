/* Callbacks from connections to their endpoint. */
#pragma once

#include "endpoint/endpoint.h"

xl_connection_hooks xl_endpoint_hooks(xl_endpoint *);
/* Makes a connection ID; in a deployment it names this server. */
void xl_endpoint_make_cid(xl_endpoint *, xl_drbg_stream *random, xl_cid *);
/* The key of a token in xl_endpoint.reset_tokens. */
xl_cid xl_endpoint_token_key(const uint8_t token[16]);
/* Returns 0 or XL_ERR_CRYPTO. Without a token no CID is issued and no reset is sent, because any other bytes in its
 * place could be known to others. */
int xl_endpoint_reset_token(const xl_endpoint *, const xl_cid *, uint8_t token[16]);
