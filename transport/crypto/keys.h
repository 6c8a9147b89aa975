/* Private to this room: what a set of packet protection keys holds. */
#ifndef XL_CRYPTO_KEYS_H
#define XL_CRYPTO_KEYS_H

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/crypto.h"
#include "crypto/gcm.h"
#include "crypto/kdf.h"

#define XL_AEAD_IV      12
#define XL_AEAD_KEY_MAX 32
#define XL_HP_SAMPLE    16 /* bytes of ciphertext that the header protection mask is made from */
#define XL_HP_MASK      5
#define XL_PN_MAX_LEN   4
#define XL_PN_LEN_BITS  0x03 /* of the first byte: packet number length - 1 */

/* What changes while the keys themselves stay what they are. Ciphers are opened when they are first used, those of a
 * later generation at once: what its first packet costs must not tell of it (RFC 9001 section 6.3). Null keys never
 * are. */
typedef struct {
    uint64_t sealed;              /* packets protected */
    xl_gcm *gcm;                  /* NULL: GnuTLS seals and opens packets */
    gnutls_aead_cipher_hd_t aead; /* NULL with gcm */
    gnutls_cipher_hd_t hp;        /* NULL: header protection is by gcm */
    bool are_open;
} xl_ciphers;

struct xl_keys {
    uint32_t version; /* of QUIC */
    xl_aead aead;
    bool is_null;                  /* simulation: see null.c */
    uint8_t secret[XL_SECRET_MAX]; /* the traffic secret, from which the next generation follows */
    size_t secret_len;
    uint8_t key[XL_AEAD_KEY_MAX];
    uint8_t iv[XL_AEAD_IV];
    uint8_t hp_key[XL_AEAD_KEY_MAX];
    size_t key_len;      /* of key and of hp_key */
    xl_ciphers *ciphers; /* owned */
};

/* From now on all is GnuTLS's: tests compare with it. Returns 0 or -1. */
int xl_keys_open_gnutls(const xl_keys *);

/* Header protection mask of a sample (RFC 9001 section 5.4). Returns 0 or -1. */
int xl_keys_header_mask(const xl_keys *, const uint8_t sample[XL_HP_SAMPLE], uint8_t mask[XL_HP_MASK]);

/* What keys with is_null do instead; called with arguments that the real functions have checked. */
size_t xl_null_protect(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t pn_offset, size_t pn_len,
                       size_t payload_len);
int xl_null_unmask(const uint8_t *packet, size_t pn_offset, uint64_t *truncated_pn, size_t *pn_len);
ssize_t xl_null_open(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t packet_len,
                     size_t pn_offset, size_t pn_len, uint8_t **payload);

#endif
