/* Random choices that follow from a key of 256 bits. Each purpose has a key of its own, HKDF-Expand(key, "railyard "
 * purpose) with SHA-256 (RFC 5869 section 2.3), so that what is seen of one purpose tells nothing of another. A
 * generator is the ChaCha20 key stream (RFC 8439 section 2.4) under its purpose's key, with a block counter and a nonce
 * of 64 bits each: it has 2^64 streams, told apart by the nonce, one for each connection. The same key gives the same
 * choices. */
#ifndef XL_CRYPTO_RANDOM_H
#define XL_CRYPTO_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define XL_SUBKEY_BYTES 32

/* The key of a purpose. 0 or XL_ERR_CRYPTO, and then out is zeros. */
int xl_random_subkey(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose, uint8_t *out, size_t len);

/* The generator of a purpose. */
typedef struct xl_drbg xl_drbg;

/* NULL: no memory, or GnuTLS fails. */
xl_drbg *xl_drbg_new(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose);
xl_drbg *xl_drbg_from_subkey(const uint8_t subkey[XL_SUBKEY_BYTES]);
void xl_drbg_free(xl_drbg *); /* NULL is fine */

/* One of its streams. Owns nothing; the generator must outlive it. */
typedef struct {
    const xl_drbg *drbg;
    uint64_t number; /* the nonce */
    uint64_t block;  /* of the key stream, the next to be drawn from */
    uint64_t bits;   /* of the last draw of xl_drbg_bit(), the next one lowest */
    unsigned bits_left;
} xl_drbg_stream;

xl_drbg_stream xl_drbg_stream_of(const xl_drbg *, uint64_t number);
/* The next bytes, and the next number. Each draw begins with a new block; what is left of its last one is not used.
 * Nothing is allocated. */
void xl_drbg_bytes(xl_drbg_stream *, uint8_t *out, size_t len);
uint64_t xl_drbg_next(xl_drbg_stream *);
/* One bit: 64 of them take one xl_drbg_next(), the lowest bit first. For what every packet draws. */
bool xl_drbg_bit(xl_drbg_stream *);

#endif
