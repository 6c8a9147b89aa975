/* HKDF for QUIC (RFC 9001 section 5.1: HKDF-Expand-Label of RFC 8446 section 7.1 with an empty context). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>

#define XL_SECRET_MAX 48 /* bytes of SHA-384, the longest hash among the cipher suites */

/* xl_kdf_expand_label: label without the "tls13 " prefix, at most 32 bytes. Return 0 or -1. */
int xl_kdf_expand_label(gnutls_mac_algorithm_t, const uint8_t *secret, size_t secret_len, const char *label,
                        uint8_t *out, size_t out_len);
int xl_kdf_expand_sha256(const uint8_t *secret, size_t secret_len, const uint8_t *info, size_t info_len, uint8_t *out,
                         size_t out_len);
int xl_kdf_extract_sha256(const uint8_t *salt, size_t salt_len, const uint8_t *input, size_t input_len,
                          uint8_t out[32]);
