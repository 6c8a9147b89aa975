/* Random choices that are derived from a key of 256 bits. Each purpose has its own key, HKDF-Expand(key, "railyard "
 * purpose) with SHA-256 (RFC 5869 section 2.3), so that the choices of one purpose reveal nothing about those of
 * another. A generator is the ChaCha20 key stream (RFC 8439 section 2.4) under its purpose's key, with a block counter
 * and a nonce of 64 bits each: it has 2^64 streams, distinguished by the nonce, one for each connection. The same key
 * gives the same choices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define XL_SUBKEY_BYTES 32

/* Derives the key of a purpose. Returns 0 or XL_ERR_CRYPTO; then out is zeros. */
int xl_random_subkey(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose, uint8_t *out, size_t len);

/* The generator of a purpose. */
typedef struct xl_drbg xl_drbg;

/* NULL: no memory, or GnuTLS failed. */
xl_drbg *xl_drbg_new(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose);
xl_drbg *xl_drbg_from_subkey(const uint8_t subkey[XL_SUBKEY_BYTES]);
void xl_drbg_free(xl_drbg *); /* NULL is fine */

/* A stream of a generator. Owns nothing; the generator must outlive it. */
typedef struct {
    const xl_drbg *drbg;
    uint64_t number; /* the nonce */
    uint64_t block;  /* next block of the key stream */
    uint64_t bits;   /* unused bits of xl_drbg_bit(), the next one lowest */
    unsigned bits_left;
} xl_drbg_stream;

xl_drbg_stream xl_drbg_stream_of(const xl_drbg *, uint64_t number);
/* Draw the next bytes, or number. Each draw begins with a new block; the rest of its last one is unused. No
 * allocation. */
void xl_drbg_bytes(xl_drbg_stream *, uint8_t *out, size_t len);
uint64_t xl_drbg_next(xl_drbg_stream *);
/* Draws one bit, for use in every packet: 64 of them take one xl_drbg_next(), the lowest bit first. */
bool xl_drbg_bit(xl_drbg_stream *);
