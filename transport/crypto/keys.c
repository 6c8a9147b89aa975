#include "crypto/keys.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define LONG_HEADER_FORM     0x80
#define LONG_PROTECTED_BITS  0x0f /* reserved bits, packet number length */
#define SHORT_PROTECTED_BITS 0x1f /* the same and the key phase */

#define MAX_UDP_PAYLOAD 65535

typedef struct {
    gnutls_cipher_algorithm_t cipher, hp_cipher;
    gnutls_mac_algorithm_t mac; /* of the cipher suite's hash */
    size_t key_len, secret_len;
    uint64_t confidentiality_limit, integrity_limit; /* RFC 9001 section 6.6, packets */
} suite;

/* GnuTLS offers no raw AES-ECB: CBC of a single block under a zero IV is the same function. With ChaCha20-Poly1305 the
 * confidentiality limit exceeds the number of possible packets. */
static const suite SUITES[] = {
    [XL_AEAD_AES_128_GCM] = {GNUTLS_CIPHER_AES_128_GCM, GNUTLS_CIPHER_AES_128_CBC, GNUTLS_MAC_SHA256, 16, 32,
                             UINT64_C(1) << 23, UINT64_C(1) << 52},
    [XL_AEAD_AES_256_GCM] = {GNUTLS_CIPHER_AES_256_GCM, GNUTLS_CIPHER_AES_256_CBC, GNUTLS_MAC_SHA384, 32, 48,
                             UINT64_C(1) << 23, UINT64_C(1) << 52},
    [XL_AEAD_CHACHA20_POLY1305] = {GNUTLS_CIPHER_CHACHA20_POLY1305, GNUTLS_CIPHER_CHACHA20_32, GNUTLS_MAC_SHA256, 32,
                                   32, UINT64_C(1) << 62, UINT64_C(1) << 36},
};

static const suite *suite_of(const xl_keys *keys) {
    return &SUITES[keys->aead];
}

static void close_ciphers(xl_ciphers *c) {
    xl_gcm_free(c->gcm);
    if (c->aead)
        gnutls_aead_cipher_deinit(c->aead);
    if (c->hp)
        gnutls_cipher_deinit(c->hp);
    *c = (xl_ciphers){.sealed = c->sealed};
}

/* Opens GnuTLS's ciphers for what gcm does not do. */
static int complete_ciphers(const xl_keys *keys) {
    const suite *s = suite_of(keys);
    xl_ciphers *c = keys->ciphers;
    uint8_t zero_iv[XL_HP_SAMPLE] = {0}, block[XL_HP_SAMPLE];
    const gnutls_datum_t key = {(unsigned char *)keys->key, (unsigned int)keys->key_len};
    const gnutls_datum_t hp_key = {(unsigned char *)keys->hp_key, (unsigned int)keys->key_len};
    const gnutls_datum_t iv = {zero_iv, sizeof zero_iv};
    bool needs_hp = !c->gcm || !xl_gcm_encrypt_block(c->gcm, zero_iv, block);
    bool has_aead = c->gcm || gnutls_aead_cipher_init(&c->aead, s->cipher, &key) == 0;
    if (!has_aead)
        c->aead = NULL; /* undefined after a failure */
    bool has_hp = !needs_hp || gnutls_cipher_init(&c->hp, s->hp_cipher, &hp_key, &iv) == 0;
    if (!has_hp)
        c->hp = NULL;
    c->are_open = has_aead && has_hp;
    if (!c->are_open)
        close_ciphers(c);
    return c->are_open ? 0 : -1;
}

int xl_keys_open_gnutls(const xl_keys *keys) {
    close_ciphers(keys->ciphers);
    return complete_ciphers(keys);
}

__attribute__((noinline)) static int open_ciphers(const xl_keys *keys) {
    if (keys->aead != XL_AEAD_CHACHA20_POLY1305)
        keys->ciphers->gcm = xl_gcm_new(keys->key, keys->hp_key, keys->key_len);
    return complete_ciphers(keys);
}

/* Opens the ciphers if necessary. NULL: that failed. */
static const xl_ciphers *ciphers_of(const xl_keys *keys) {
    return keys->ciphers->are_open || open_ciphers(keys) == 0 ? keys->ciphers : NULL;
}

/* RFC 9001 sections 5.1 and 6.1, RFC 9369 section 3.3. */
typedef struct {
    const char *key, *iv, *hp, *update;
    uint8_t salt[20]; /* of Initial secrets */
} version_labels;

static const version_labels *labels_of(uint32_t version) {
    static const version_labels v1 = {
        "quic key", "quic iv", "quic hp", "quic ku", {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
                                                      0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a}};
    static const version_labels v2 = {
        "quicv2 key", "quicv2 iv", "quicv2 hp", "quicv2 ku", {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6,
                                                              0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
                                                              0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9}};
    return version == XL_VERSION_2 ? &v2 : &v1;
}

/* hp_key NULL: it is derived from the secret too, as for the first generation of keys. */
static xl_keys *keys_new(uint32_t version, xl_aead aead, const uint8_t *secret, size_t len, const uint8_t *hp_key) {
    if ((size_t)aead >= sizeof SUITES / sizeof SUITES[0] || len != SUITES[aead].secret_len)
        return NULL;
    const suite *s = &SUITES[aead];
    const version_labels *labels = labels_of(version);
    xl_keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return NULL;
    keys->version = version;
    keys->aead = aead;
    keys->key_len = s->key_len;
    keys->secret_len = len;
    memcpy(keys->secret, secret, len);
    keys->ciphers = calloc(1, sizeof *keys->ciphers);
    bool ok = keys->ciphers && xl_kdf_expand_label(s->mac, secret, len, labels->key, keys->key, s->key_len) == 0 &&
              xl_kdf_expand_label(s->mac, secret, len, labels->iv, keys->iv, sizeof keys->iv) == 0;
    if (ok && hp_key)
        memcpy(keys->hp_key, hp_key, s->key_len);
    else if (ok)
        ok = xl_kdf_expand_label(s->mac, secret, len, labels->hp, keys->hp_key, s->key_len) == 0;
    if (ok)
        return keys;
    xl_keys_free(keys);
    return NULL;
}

xl_keys *xl_keys_from_secret(uint32_t version, xl_aead aead, const uint8_t *secret, size_t len) {
    return keys_new(version, aead, secret, len, NULL);
}

int xl_keys_initial(uint32_t version, const xl_cid *odcid, xl_keys **client, xl_keys **server) {
    const uint8_t *salt = labels_of(version)->salt;
    uint8_t initial[32], secret[32];
    *client = *server = NULL;
    if (xl_kdf_extract_sha256(salt, 20, odcid->id, odcid->len, initial) != 0)
        return -1;
    if (xl_kdf_expand_label(GNUTLS_MAC_SHA256, initial, sizeof initial, "client in", secret, sizeof secret) == 0)
        *client = xl_keys_from_secret(version, XL_AEAD_AES_128_GCM, secret, sizeof secret);
    if (xl_kdf_expand_label(GNUTLS_MAC_SHA256, initial, sizeof initial, "server in", secret, sizeof secret) == 0)
        *server = xl_keys_from_secret(version, XL_AEAD_AES_128_GCM, secret, sizeof secret);
    if (!*client || !*server) {
        xl_keys_free(*client);
        xl_keys_free(*server);
        *client = *server = NULL;
        return -1;
    }
    return 0;
}

xl_keys *xl_keys_next(const xl_keys *keys) {
    uint8_t secret[XL_SECRET_MAX];
    xl_keys *next = NULL;
    if (xl_kdf_expand_label(suite_of(keys)->mac, keys->secret, keys->secret_len, labels_of(keys->version)->update,
                            secret, keys->secret_len) == 0)
        next = keys_new(keys->version, keys->aead, secret, keys->secret_len, keys->hp_key);
    if (next && keys->is_null) {
        xl_keys_make_null(next);
    } else if (next && !ciphers_of(next)) {
        xl_keys_free(next);
        next = NULL;
    }
    gnutls_memset(secret, 0, sizeof secret);
    return next;
}

void xl_keys_free(xl_keys *keys) {
    if (!keys)
        return;
    if (keys->ciphers)
        close_ciphers(keys->ciphers);
    free(keys->ciphers);
    gnutls_memset(keys, 0, sizeof *keys);
    free(keys);
}

void xl_keys_nonce(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t nonce[12]) {
    uint32_t first;
    uint64_t second;
    memcpy(&first, keys->iv, sizeof first);
    memcpy(&second, keys->iv + sizeof first, sizeof second);
    first ^= htobe32((uint32_t)path_id);
    second ^= htobe64(pn);
    memcpy(nonce, &first, sizeof first);
    memcpy(nonce + sizeof first, &second, sizeof second);
}

static int mask_by_gnutls(const xl_keys *keys, const xl_ciphers *c, const uint8_t *sample,
                          uint8_t output[XL_HP_SAMPLE]) {
    uint8_t iv[XL_HP_SAMPLE] = {0}, block[XL_HP_SAMPLE] = {0};
    const uint8_t *input = sample;
    if (keys->aead == XL_AEAD_CHACHA20_POLY1305) {
        /* The sample is the block counter (little endian) and the nonce; the mask is the key stream. */
        memcpy(iv, sample, sizeof iv);
        input = block;
    }
    gnutls_cipher_set_iv(c->hp, iv, sizeof iv);
    return gnutls_cipher_encrypt2(c->hp, input, XL_HP_SAMPLE, output, XL_HP_SAMPLE);
}

int xl_keys_header_mask(const xl_keys *keys, const uint8_t sample[XL_HP_SAMPLE], uint8_t mask[XL_HP_MASK]) {
    const xl_ciphers *c = ciphers_of(keys);
    uint8_t output[XL_HP_SAMPLE];
    if (!c || (c->hp && mask_by_gnutls(keys, c, sample, output) != 0))
        return -1;
    if (!c->hp)
        xl_gcm_encrypt_block(c->gcm, sample, output);
    memcpy(mask, output, XL_HP_MASK);
    return 0;
}

static uint8_t protected_bits(uint8_t first) {
    return first & LONG_HEADER_FORM ? LONG_PROTECTED_BITS : SHORT_PROTECTED_BITS;
}

size_t xl_keys_protect(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t pn_offset,
                       size_t pn_len, size_t payload_len) {
    /* Beyond the confidentiality limit these keys must not be used, whatever the caller does. */
    if (pn_len < 1 || pn_len > XL_PN_MAX_LEN || pn_len + payload_len < XL_PN_MAX_LEN ||
        keys->ciphers->sealed >= suite_of(keys)->confidentiality_limit)
        return 0;
    if (keys->is_null)
        return xl_null_protect(keys, path_id, pn, packet, pn_offset, pn_len, payload_len);
    const xl_ciphers *c = ciphers_of(keys);
    const size_t header_len = pn_offset + pn_len;
    uint8_t nonce[XL_AEAD_IV], mask[XL_HP_MASK], *payload = packet + header_len;
    size_t sealed_len = payload_len + XL_AEAD_TAG;
    if (!c)
        return 0;
    xl_keys_nonce(keys, path_id, pn, nonce);
    if (c->gcm)
        xl_gcm_seal(c->gcm, nonce, packet, header_len, payload, payload_len);
    else if (gnutls_aead_cipher_encrypt(c->aead, nonce, sizeof nonce, packet, header_len, XL_AEAD_TAG, payload,
                                        payload_len, payload, &sealed_len) != 0)
        return 0;
    keys->ciphers->sealed++;
    if (xl_keys_header_mask(keys, packet + pn_offset + XL_PN_MAX_LEN, mask) != 0)
        return 0;
    packet[0] ^= mask[0] & protected_bits(packet[0]);
    for (size_t i = 0; i < pn_len; i++)
        packet[pn_offset + i] ^= mask[1 + i];
    return header_len + sealed_len;
}

int xl_keys_unmask(const xl_keys *keys, uint8_t *packet, size_t packet_len, size_t pn_offset, uint64_t *truncated_pn,
                   size_t *pn_len) {
    uint8_t mask[XL_HP_MASK];
    const size_t sample_end = XL_PN_MAX_LEN + XL_HP_SAMPLE;
    if (pn_offset == 0 || packet_len < sample_end || pn_offset > packet_len - sample_end)
        return -1;
    if (keys->is_null)
        return xl_null_unmask(packet, pn_offset, truncated_pn, pn_len);
    if (xl_keys_header_mask(keys, packet + pn_offset + XL_PN_MAX_LEN, mask) != 0)
        return -1;
    packet[0] ^= mask[0] & protected_bits(packet[0]);
    *pn_len = (size_t)(packet[0] & XL_PN_LEN_BITS) + 1;
    *truncated_pn = 0;
    for (size_t i = 0; i < *pn_len; i++) {
        packet[pn_offset + i] ^= mask[1 + i];
        *truncated_pn = *truncated_pn << 8 | packet[pn_offset + i];
    }
    return 0;
}

/* GnuTLS's accelerated AEADs write the plaintext before they compare the tag. So decryption goes through a buffer of
 * the thread, and the packet changes only if it is authentic. */
static _Thread_local uint8_t plaintext[MAX_UDP_PAYLOAD];

ssize_t xl_keys_open(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t packet_len,
                     size_t pn_offset, size_t pn_len, uint8_t **payload) {
    const size_t header_len = pn_offset + pn_len;
    if (header_len < pn_offset || packet_len > MAX_UDP_PAYLOAD || packet_len < XL_AEAD_TAG ||
        header_len > packet_len - XL_AEAD_TAG)
        return -1;
    if (keys->is_null)
        return xl_null_open(keys, path_id, pn, packet, packet_len, pn_offset, pn_len, payload);
    const xl_ciphers *c = ciphers_of(keys);
    uint8_t nonce[XL_AEAD_IV];
    size_t plain_len = packet_len - header_len - XL_AEAD_TAG;
    if (!c)
        return -1;
    xl_keys_nonce(keys, path_id, pn, nonce);
    *payload = packet + header_len;
    if (c->gcm)
        return xl_gcm_open(c->gcm, nonce, packet, header_len, *payload, plain_len) ? (ssize_t)plain_len : -1;
    if (gnutls_aead_cipher_decrypt(c->aead, nonce, sizeof nonce, packet, header_len, XL_AEAD_TAG, *payload,
                                   plain_len + XL_AEAD_TAG, plaintext, &plain_len) != 0)
        return -1;
    memcpy(*payload, plaintext, plain_len);
    return (ssize_t)plain_len;
}

uint64_t xl_keys_sealed_count(const xl_keys *keys) {
    return keys->ciphers->sealed;
}

uint64_t xl_keys_confidentiality_limit(const xl_keys *keys) {
    return suite_of(keys)->confidentiality_limit;
}

uint64_t xl_keys_integrity_limit(const xl_keys *keys) {
    return suite_of(keys)->integrity_limit;
}
