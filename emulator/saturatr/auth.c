#include "emulator/saturatr/auth.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

bool sat_auth_random(void *out, size_t length) {
    return gnutls_rnd(GNUTLS_RND_KEY, out, length) == 0;
}

static bool mac(const void *key, size_t key_length, const void *text, size_t length, uint8_t out[SAT_PROOF_BYTES]) {
    return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_length, text, length, out) == 0;
}

/* HMAC(token, label | role | client's nonce | server's nonce) */
static bool derive(const char *token, const char label[8], sat_role role, const sat_nonces *nonces,
                   uint8_t out[SAT_PROOF_BYTES]) {
    uint8_t text[9 + 2 * SAT_NONCE_BYTES];
    memcpy(text, label, 8);
    text[8] = (uint8_t)role;
    memcpy(text + 9, nonces->client, SAT_NONCE_BYTES);
    memcpy(text + 9 + SAT_NONCE_BYTES, nonces->server, SAT_NONCE_BYTES);
    return mac(token, strlen(token), text, sizeof text, out);
}

bool sat_auth_proof(const char *token, sat_role role, const sat_nonces *nonces, uint8_t out[SAT_PROOF_BYTES]) {
    return derive(token, "saturprf", role, nonces, out);
}

bool sat_auth_same(const uint8_t *a, const uint8_t *b, size_t length) {
    return gnutls_memcmp(a, b, length) == 0;
}

bool sat_auth_tag(const char *token, sat_role role, const sat_nonces *nonces, uint64_t *tag) {
    uint8_t out[SAT_PROOF_BYTES];
    bool ok = derive(token, "saturtag", role, nonces, out);
    *tag = 0;
    for (size_t i = 0; i < sizeof *tag; i++)
        *tag = *tag << 8 | out[i]; /* the same number at both ends, for any byte order */
    return ok;
}

bool sat_auth_cookie(const uint8_t key[SAT_KEY_BYTES], uint8_t channel, const xl_addr *remote,
                     uint8_t out[SAT_COOKIE_BYTES]) {
    uint8_t text[1 + 2 + 16] = {channel, (uint8_t)(remote->port >> 8), (uint8_t)remote->port};
    uint8_t full[SAT_PROOF_BYTES];
    memcpy(text + 3, remote->ip, sizeof remote->ip);
    bool ok = mac(key, SAT_KEY_BYTES, text, sizeof text, full);
    memcpy(out, full, SAT_COOKIE_BYTES);
    return ok;
}
