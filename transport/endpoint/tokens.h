/* Tokens of NEW_TOKEN: a client that returns from the same address proves with one that it receives packets there (RFC
 * 9000 section 8.1.3). They are encrypted, so they reveal nothing to an observer (section 8.1.4). The server does not
 * store the tokens that it issues. */
#pragma once

#include "connection/state.h"
#include "wire/packet.h"

#define XL_TOKEN_KEY_BYTES   32
#define XL_TOKEN_NONCE_BYTES 12
#define XL_TOKEN_BYTES       XL_NEW_TOKEN_BYTES /* kind, nonce, time, tag */
#define XL_TOKEN_LIFETIME_US UINT64_C(3600000000)

/* Makes a token for a client's address, whatever its port. date: xl_endpoint_date(). Returns 0, or a negative value if
 * the cryptography fails. */
int xl_token_make(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t nonce[XL_TOKEN_NONCE_BYTES],
                  const xl_addr *client, uint64_t date, uint8_t token[XL_TOKEN_BYTES]);
/* Whether the token is one of ours, for this address, and not too old. Any other counts as none. */
bool xl_token_is_valid(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t *token, size_t len, const xl_addr *client,
                       uint64_t date);
