#include "crypto/gcm.h"

#include "crypto/crypto.h"

#if defined(XL_HAS_IPSEC_MB) && defined(__x86_64__)

#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include <gnutls/gnutls.h>
#include <intel-ipsec-mb.h>

#define ROUND_KEYS_BYTES (16 * 11) /* of AES-128 */

struct xl_gcm {
    struct gcm_key_data key __attribute__((aligned(64))); /* as within the library, whose header omits it */
    uint8_t round_keys[ROUND_KEYS_BYTES] __attribute__((aligned(16)));
    bool is_128;
};

/* The library's functions for this processor; NULL: not supported. Never changed after they are made. */
static const IMB_MGR *functions;
static once_flag functions_are_made = ONCE_FLAG_INIT;

static void make_functions(void) {
    const uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    IMB_MGR *m = alloc_mb_mgr(0);
    if (!m)
        return;
    init_mb_mgr_auto(m, NULL);
    if (imb_get_errno(m) == 0 && (m->features & needed) == needed)
        functions = m;
    else
        free_mb_mgr(m);
}

xl_gcm *xl_gcm_new(const uint8_t *key, const uint8_t *hp_key, size_t key_len) {
    call_once(&functions_are_made, make_functions);
    const size_t alignment = _Alignof(xl_gcm);
    xl_gcm *gcm = functions ? aligned_alloc(alignment, sizeof *gcm) : NULL;
    if (!gcm)
        return NULL;
    memset(gcm, 0, sizeof *gcm);
    gcm->is_128 = key_len == 16;
    if (gcm->is_128) {
        uint8_t decryption_keys[ROUND_KEYS_BYTES] __attribute__((aligned(16)));
        IMB_AES128_GCM_PRE(functions, key, &gcm->key);
        IMB_AES_KEYEXP_128(functions, hp_key, gcm->round_keys, decryption_keys);
        gnutls_memset(decryption_keys, 0, sizeof decryption_keys);
    } else {
        IMB_AES256_GCM_PRE(functions, key, &gcm->key);
    }
    return gcm;
}

void xl_gcm_free(xl_gcm *gcm) {
    if (gcm)
        gnutls_memset(gcm, 0, sizeof *gcm);
    free(gcm);
}

/* Takes a time that does not depend on the bytes, a tenth of gnutls_memcmp()'s. */
static bool is_same_tag(const uint8_t *a, const uint8_t *b) {
    uint64_t x[2], y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

void xl_gcm_seal(const xl_gcm *gcm, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len) {
    struct gcm_context_data context;
    aes_gcm_enc_dec_t seal = gcm->is_128 ? functions->gcm128_enc : functions->gcm256_enc;
    seal(&gcm->key, &context, text, text, len, nonce, bound, bound_len, text + len, XL_AEAD_TAG);
}

bool xl_gcm_open(const xl_gcm *gcm, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len) {
    struct gcm_context_data context;
    uint8_t tag[XL_AEAD_TAG];
    aes_gcm_enc_dec_t open = gcm->is_128 ? functions->gcm128_dec : functions->gcm256_dec;
    open(&gcm->key, &context, text, text, len, nonce, bound, bound_len, tag, sizeof tag);
    if (is_same_tag(tag, text + len))
        return true;
    /* Adding the key stream a second time restores the ciphertext. */
    open(&gcm->key, &context, text, text, len, nonce, bound, bound_len, tag, sizeof tag);
    gnutls_memset(tag, 0, sizeof tag); /* the valid tag of a forged packet */
    return false;
}

/* The library offers no AES-ECB of a single block. CFB encrypts its IV and adds the text, here zero. */
bool xl_gcm_encrypt_block(const xl_gcm *gcm, const uint8_t in[16], uint8_t out[16]) {
    static const uint8_t zero[16];
    if (gcm->is_128)
        functions->aes128_cfb_one(out, zero, in, gcm->round_keys, sizeof zero);
    return gcm->is_128;
}

#else

xl_gcm *xl_gcm_new(const uint8_t *key, const uint8_t *hp_key, size_t key_len) {
    (void)key, (void)hp_key, (void)key_len;
    return NULL;
}

void xl_gcm_free(xl_gcm *gcm) {
    (void)gcm;
}

void xl_gcm_seal(const xl_gcm *gcm, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len) {
    (void)gcm, (void)nonce, (void)bound, (void)bound_len, (void)text, (void)len;
}

bool xl_gcm_open(const xl_gcm *gcm, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len) {
    (void)gcm, (void)nonce, (void)bound, (void)bound_len, (void)text, (void)len;
    return false;
}

bool xl_gcm_encrypt_block(const xl_gcm *gcm, const uint8_t in[16], uint8_t out[16]) {
    (void)gcm, (void)in, (void)out;
    return false;
}

#endif
