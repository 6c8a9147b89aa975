#include "endpoint/tokens.h"

#include <string.h>

#include "crypto/crypto.h"
#include "crypto/random.h"

/* A token is: kind, nonce, time of issue (sealed). The seal covers the kind and the client's address. */
#define KIND        0x4e
#define BOUND_BYTES (1 + 1 + 16)

static int token_key(const uint8_t key[XL_TOKEN_KEY_BYTES], uint8_t out[32]) {
    return xl_random_subkey(key, "tokens of NEW_TOKEN", out, 32);
}

static size_t bound_to(const xl_addr *client, uint8_t bound[BOUND_BYTES]) {
    const size_t len = client->family == 4 ? 4 : 16;
    bound[0] = KIND;
    bound[1] = client->family;
    memcpy(bound + 2, client->ip, len);
    return 2 + len;
}

int xl_token_make(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t nonce[XL_TOKEN_NONCE_BYTES],
                  const xl_addr *client, uint64_t date, uint8_t token[XL_TOKEN_BYTES]) {
    uint8_t own[32], bound[BOUND_BYTES], issued[8];
    const size_t bound_len = bound_to(client, bound);
    for (size_t i = 0; i < sizeof issued; i++)
        issued[i] = (uint8_t)(date >> (56 - 8 * i));
    token[0] = KIND;
    memcpy(token + 1, nonce, XL_TOKEN_NONCE_BYTES);
    return token_key(key, own) != 0
               ? -1
               : xl_seal(own, nonce, bound, bound_len, issued, sizeof issued, token + 1 + XL_TOKEN_NONCE_BYTES);
}

bool xl_token_is_valid(const uint8_t key[XL_TOKEN_KEY_BYTES], const uint8_t *token, size_t len, const xl_addr *client,
                       uint64_t date) {
    uint8_t own[32], bound[BOUND_BYTES], issued[8];
    const size_t bound_len = bound_to(client, bound);
    if (len != XL_TOKEN_BYTES || token[0] != KIND || token_key(key, own) != 0 ||
        xl_unseal(own, token + 1, bound, bound_len, token + 1 + XL_TOKEN_NONCE_BYTES, 8 + 16, issued) != 0)
        return false;
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof issued; i++)
        at = at << 8 | issued[i];
    return at <= date && date - at <= XL_TOKEN_LIFETIME_US;
}
