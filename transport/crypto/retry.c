#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/crypto.h"

/* The tag is that of an AEAD with an empty plaintext, the whole packet as associated data, and a published key. */
int xl_retry_tag(uint32_t version, const xl_cid *odcid, const uint8_t *retry, size_t len_without_tag, uint8_t tag[16]) {
    static const struct {
        uint8_t key[16], nonce[12];
    } V1 = {{0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e},
            {0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb}},
      V2 = {{0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92},
            {0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a}};
    const uint8_t *nonce = version == XL_VERSION_2 ? V2.nonce : V1.nonce;
    uint8_t key_bytes[16];
    memcpy(key_bytes, version == XL_VERSION_2 ? V2.key : V1.key, sizeof key_bytes);
    const gnutls_datum_t key = {key_bytes, sizeof key_bytes};
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
    const int rc =
        gnutls_aead_cipher_encrypt(cipher, nonce, 12, pseudo, pseudo_len, XL_AEAD_TAG, nothing, 0, tag, &tag_len);
    gnutls_aead_cipher_deinit(cipher);
    free(pseudo);
    return rc == 0 && tag_len == XL_AEAD_TAG ? 0 : -1;
}
