#include "crypto/random.h"

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/kdf.h"

#define LABEL_PREFIX "railyard "
#define LABEL_MAX    48
#define IV_BYTES     16
#define BLOCK_BYTES  64

struct xl_drbg {
    gnutls_cipher_hd_t cipher;
};

static void put_u64(uint8_t out[8], uint64_t v) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

int xl_random_subkey(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose, uint8_t *out, size_t len) {
    uint8_t info[sizeof LABEL_PREFIX + LABEL_MAX] = LABEL_PREFIX;
    const size_t prefix_len = strlen(LABEL_PREFIX), purpose_len = strlen(purpose);
    memset(out, 0, len);
    if (purpose_len > LABEL_MAX)
        return XL_ERR_CRYPTO;
    memcpy(info + prefix_len, purpose, purpose_len);
    return xl_kdf_expand_sha256(key, XL_RANDOM_KEY_BYTES, info, prefix_len + purpose_len, out, len) == 0
               ? 0
               : XL_ERR_CRYPTO;
}

int xl_random_key_from_seed(uint64_t seed, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES]) {
    static const uint8_t salt[] = LABEL_PREFIX "seed";
    uint8_t input[8], extracted[XL_RANDOM_KEY_BYTES];
    put_u64(input, seed);
    memset(key, 0, XL_RANDOM_KEY_BYTES);
    if (xl_kdf_extract_sha256(salt, sizeof salt - 1, input, sizeof input, extracted) != 0)
        return XL_ERR_CRYPTO;
    return xl_random_subkey(extracted, role, key, XL_RANDOM_KEY_BYTES);
}

xl_drbg *xl_drbg_from_subkey(const uint8_t subkey[XL_SUBKEY_BYTES]) {
    uint8_t zero[IV_BYTES] = {0};
    const gnutls_datum_t key = {(unsigned char *)subkey, XL_SUBKEY_BYTES}, iv = {zero, sizeof zero};
    xl_drbg *d = calloc(1, sizeof *d);
    if (d && gnutls_cipher_init(&d->cipher, GNUTLS_CIPHER_CHACHA20_64, &key, &iv) != 0) {
        free(d);
        return NULL;
    }
    return d;
}

xl_drbg *xl_drbg_new(const uint8_t key[XL_RANDOM_KEY_BYTES], const char *purpose) {
    uint8_t subkey[XL_SUBKEY_BYTES];
    if (xl_random_subkey(key, purpose, subkey, sizeof subkey) != 0)
        return NULL;
    xl_drbg *d = xl_drbg_from_subkey(subkey);
    gnutls_memset(subkey, 0, sizeof subkey);
    return d;
}

void xl_drbg_free(xl_drbg *d) {
    if (!d)
        return;
    gnutls_cipher_deinit(d->cipher);
    free(d);
}

xl_drbg_stream xl_drbg_stream_of(const xl_drbg *d, uint64_t number) {
    return (xl_drbg_stream){.drbg = d, .number = number};
}

void xl_drbg_bytes(xl_drbg_stream *s, uint8_t *out, size_t len) {
    uint8_t iv[IV_BYTES]; /* layout of the cipher's state: block counter, nonce */
    put_u64(iv, s->block);
    put_u64(iv + 8, s->number);
    s->block += (len + BLOCK_BYTES - 1) / BLOCK_BYTES;
    memset(out, 0, len);
    gnutls_cipher_set_iv(s->drbg->cipher, iv, sizeof iv);
    /* Fails only through a fault in this program. It is better to end than to go on with predictable bytes. */
    if (gnutls_cipher_encrypt(s->drbg->cipher, out, len) != 0)
        abort();
}

uint64_t xl_drbg_next(xl_drbg_stream *s) {
    uint8_t bytes[8];
    uint64_t v = 0;
    xl_drbg_bytes(s, bytes, sizeof bytes);
    for (int i = 7; i >= 0; i--)
        v = v << 8 | bytes[i];
    return v;
}

bool xl_drbg_bit(xl_drbg_stream *s) {
    if (s->bits_left == 0) {
        s->bits = xl_drbg_next(s);
        s->bits_left = 64;
    }
    bool bit = s->bits & 1;
    s->bits >>= 1;
    s->bits_left--;
    return bit;
}
