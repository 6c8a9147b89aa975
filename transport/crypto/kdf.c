#include "crypto/kdf.h"

#include <string.h>

#include <gnutls/crypto.h>

#include "crypto/crypto.h"

#define LABEL_PREFIX "tls13 "
#define LABEL_MAX    32

static gnutls_datum_t datum_of(const uint8_t *data, size_t len) {
    /* GnuTLS's datum has no const form; the functions called here only read it. */
    return (gnutls_datum_t){.data = (unsigned char *)data, .size = (unsigned int)len};
}

int xl_kdf_expand_label(gnutls_mac_algorithm_t mac, const uint8_t *secret, size_t secret_len, const char *label,
                        uint8_t *out, size_t out_len) {
    const size_t prefix_len = strlen(LABEL_PREFIX), label_len = strlen(label);
    if (label_len > LABEL_MAX || out_len > UINT16_MAX)
        return -1;
    /* struct HkdfLabel: uint16 length, opaque label<7..255>, opaque context<0..255> */
    uint8_t info[2 + 1 + sizeof LABEL_PREFIX + LABEL_MAX + 1];
    size_t n = 0;
    info[n++] = (uint8_t)(out_len >> 8);
    info[n++] = (uint8_t)out_len;
    info[n++] = (uint8_t)(prefix_len + label_len);
    memcpy(info + n, LABEL_PREFIX, prefix_len);
    n += prefix_len;
    memcpy(info + n, label, label_len);
    n += label_len;
    info[n++] = 0;
    const gnutls_datum_t prk = datum_of(secret, secret_len), info_datum = datum_of(info, n);
    return gnutls_hkdf_expand(mac, &prk, &info_datum, out, out_len) == 0 ? 0 : -1;
}

int xl_kdf_expand_sha256(const uint8_t *secret, size_t secret_len, const uint8_t *info, size_t info_len, uint8_t *out,
                         size_t out_len) {
    const gnutls_datum_t prk = datum_of(secret, secret_len), info_datum = datum_of(info, info_len);
    return gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &prk, &info_datum, out, out_len) == 0 ? 0 : -1;
}

int xl_kdf_extract_sha256(const uint8_t *salt, size_t salt_len, const uint8_t *input, size_t input_len,
                          uint8_t out[32]) {
    const gnutls_datum_t key = datum_of(input, input_len), salt_datum = datum_of(salt, salt_len);
    return gnutls_hkdf_extract(GNUTLS_MAC_SHA256, &key, &salt_datum, out) == 0 ? 0 : -1;
}

bool xl_is_equal(const uint8_t *a, const uint8_t *b, size_t len) {
    return gnutls_memcmp(a, b, len) == 0;
}

int xl_hmac(const uint8_t *key, size_t key_len, const uint8_t *data, size_t data_len, uint8_t *out, size_t len) {
    uint8_t digest[32];
    if (len > sizeof digest || gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_len, data, data_len, digest) != 0)
        return -1;
    memcpy(out, digest, len);
    gnutls_memset(digest, 0, sizeof digest);
    return 0;
}
