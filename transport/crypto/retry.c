#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/crypto.h"

/* The tag is an AEAD over nothing, with the whole packet as associated data, under a key that everybody knows. */
int xl_retry_tag(const xl_cid *odcid, const uint8_t *retry, size_t len_without_tag, uint8_t tag[16]) {
    uint8_t key_v1[16] = {0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a,
                          0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e};
    static const uint8_t NONCE_V1[12] = {0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb};
    const gnutls_datum_t key = {key_v1, sizeof key_v1};
    const size_t pseudo_len = 1 + (size_t)odcid->len + len_without_tag;
    uint8_t *pseudo = malloc(pseudo_len);
    gnutls_aead_cipher_hd_t cipher = NULL;
    if (!pseudo || gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_128_GCM, &key) != 0) {
        free(pseudo);
        return -1;
    }
    pseudo[0] = odcid->len;
    memcpy(pseudo + 1, odcid->id, odcid->len);
    memcpy(pseudo + 1 + odcid->len, retry, len_without_tag);
    const uint8_t nothing[1] = {0};
    size_t tag_len = XL_AEAD_TAG;
    const int rc = gnutls_aead_cipher_encrypt(cipher, NONCE_V1, sizeof NONCE_V1, pseudo, pseudo_len, XL_AEAD_TAG,
                                              nothing, 0, tag, &tag_len);
    gnutls_aead_cipher_deinit(cipher);
    free(pseudo);
    return rc == 0 && tag_len == XL_AEAD_TAG ? 0 : -1;
}
