#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/crypto.h"

static gnutls_aead_cipher_hd_t open_cipher(const uint8_t key[32]) {
    uint8_t copy[32];
    gnutls_aead_cipher_hd_t cipher = NULL;
    memcpy(copy, key, sizeof copy);
    const gnutls_datum_t datum = {copy, sizeof copy};
    if (gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_256_GCM, &datum) != 0)
        cipher = NULL;
    gnutls_memset(copy, 0, sizeof copy);
    return cipher;
}

int xl_seal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *bound, size_t bound_len,
            const uint8_t *plain, size_t len, uint8_t *sealed) {
    gnutls_aead_cipher_hd_t cipher = open_cipher(key);
    size_t sealed_len = len + XL_AEAD_TAG;
    if (!cipher)
        return -1;
    const int rc =
        gnutls_aead_cipher_encrypt(cipher, nonce, 12, bound, bound_len, XL_AEAD_TAG, plain, len, sealed, &sealed_len);
    gnutls_aead_cipher_deinit(cipher);
    return rc == 0 ? 0 : -1;
}

int xl_unseal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *bound, size_t bound_len,
              const uint8_t *sealed, size_t len, uint8_t *plain) {
    gnutls_aead_cipher_hd_t cipher = len > XL_AEAD_TAG ? open_cipher(key) : NULL;
    size_t plain_len = len - XL_AEAD_TAG;
    if (!cipher)
        return -1;
    const int rc =
        gnutls_aead_cipher_decrypt(cipher, nonce, 12, bound, bound_len, XL_AEAD_TAG, sealed, len, plain, &plain_len);
    gnutls_aead_cipher_deinit(cipher);
    return rc == 0 ? 0 : -1;
}
