/* Tokens of NEW_TOKEN: a client that comes back from the same address shows by one that it receives what is sent there
 * (RFC 9000 section 8.1.3). Encrypted, so that they tell an observer nothing (section 8.1.4). The server keeps nothing.
 * */
#ifndef XL_ENDPOINT_TOKENS_H
#define XL_ENDPOINT_TOKENS_H

#include "connection/state.h"
#include "wire/packet.h"

#define XL_TOKEN_KEY_BYTES   32
#define XL_TOKEN_NONCE_BYTES 12
#define XL_TOKEN_BYTES       XL_NEW_TOKEN_BYTES /* kind, nonce, time, tag */
#define XL_TOKEN_LIFETIME_US UINT64_C(3600000000)

/* For the address of a client, whatever its port; date: xl_endpoint_date(). 0, or negative when the cryptography
 * fails. */
int xl_token_make(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t nonce[XL_TOKEN_NONCE_BYTES],
                  const xl_addr *client, uint64_t date, uint8_t token[XL_TOKEN_BYTES]);
/* Whether it is one of ours, of this address, and not too old. Any other one is as none. */
bool xl_token_is_valid(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t *token, size_t len, const xl_addr *client,
                       uint64_t date);

#endif
