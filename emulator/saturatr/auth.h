/* Access to a saturatr server, and authentication of datagrams. Both ends have a secret text, the token, which is never
 * sent: each end proves by HMAC-SHA-256 over both nonces that it has the token, and the tags of the session's datagrams
 * derive from it. A cookie is bound to the address that it was sent to. A client that returns it receives at that
 * address, so the server sends data only to clients that asked for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/saturatr/wire.h"
#include "xlink/xlink.h"

#define SAT_NONCE_BYTES 16u
#define SAT_PROOF_BYTES 32u
#define SAT_KEY_BYTES   32u
#define SAT_TOKEN_LEAST 8u /* characters */
#define SAT_TOKEN_MOST  256u

typedef enum { SAT_CLIENT = 0, SAT_SERVER = 1 } sat_role;

typedef struct {
    uint8_t client[SAT_NONCE_BYTES];
    uint8_t server[SAT_NONCE_BYTES];
} sat_nonces;

bool sat_auth_random(void *out, size_t length);
/* Computes the proof that role gives. */
bool sat_auth_proof(const char *token, sat_role role, const sat_nonces *nonces, uint8_t out[SAT_PROOF_BYTES]);
/* Compares in constant time. */
bool sat_auth_same(const uint8_t *a, const uint8_t *b, size_t length);
/* Computes the tag of the datagrams that role sends. */
bool sat_auth_tag(const char *token, sat_role role, const sat_nonces *nonces, uint64_t *tag);
bool sat_auth_cookie(const uint8_t key[SAT_KEY_BYTES], uint8_t channel, const xl_addr *remote,
                     uint8_t out[SAT_COOKIE_BYTES]);
