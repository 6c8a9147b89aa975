/* What connections ask of their endpoint. */
#ifndef XL_ENDPOINT_HOOKS_H
#define XL_ENDPOINT_HOOKS_H

#include "endpoint/endpoint.h"

xl_connection_hooks xl_endpoint_hooks(xl_endpoint *);
/* A connection ID that names this server, where there is a deployment. */
void xl_endpoint_make_cid(xl_endpoint *, xl_drbg_stream *random, xl_cid *);
/* What xl_endpoint.reset_tokens has it by. */
xl_cid xl_endpoint_token_key(const uint8_t token[16]);
/* 0 or XL_ERR_CRYPTO. Without a token nothing is issued and nothing reset: any other bytes in its place could be known
 * to others. */
int xl_endpoint_reset_token(const xl_endpoint *, const xl_cid *, uint8_t token[16]);

#endif
