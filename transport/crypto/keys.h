/* Private to this room: what a set of packet protection keys holds. */
#pragma once

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/crypto.h"
#include "crypto/gcm.h"
#include "crypto/kdf.h"

#define XL_AEAD_IV      12
#define XL_AEAD_KEY_MAX 32
#define XL_HP_SAMPLE    16 /* bytes of ciphertext from which the mask of header protection is computed */
#define XL_HP_MASK      5
#define XL_PN_MAX_LEN   4
#define XL_PN_LEN_BITS  0x03 /* of the first byte: packet number length - 1 */

/* The mutable part of keys. Ciphers are opened when they are first used, those of a later generation at once: the time
 * of its first packet must not reveal the key update (RFC 9001 section 6.3). Null keys open none. */
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
    uint8_t secret[XL_SECRET_MAX]; /* traffic secret, from which the next generation is derived */
    size_t secret_len;
    uint8_t key[XL_AEAD_KEY_MAX];
    uint8_t iv[XL_AEAD_IV];
    uint8_t hp_key[XL_AEAD_KEY_MAX];
    size_t key_len;      /* of key and of hp_key */
    xl_ciphers *ciphers; /* owned */
};

/* Uses GnuTLS alone from now on, for tests that compare with it. Returns 0 or -1. */
int xl_keys_open_gnutls(const xl_keys *);

/* Header protection mask of a sample (RFC 9001 section 5.4). Returns 0 or -1. */
int xl_keys_header_mask(const xl_keys *, const uint8_t sample[XL_HP_SAMPLE], uint8_t mask[XL_HP_MASK]);

/* The functions for keys with is_null. The real functions have checked their arguments. */
size_t xl_null_protect(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t pn_offset, size_t pn_len,
                       size_t payload_len);
int xl_null_unmask(const uint8_t *packet, size_t pn_offset, uint64_t *truncated_pn, size_t *pn_len);
ssize_t xl_null_open(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t packet_len,
                     size_t pn_offset, size_t pn_len, uint8_t **payload);
