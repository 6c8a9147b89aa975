/* Private to this room: AES-GCM by Intel's library for packet processing (intel-ipsec-mb), which seals a packet in a
 * third of GnuTLS's time if the processor has vector AES. An xl_gcm holds the keys of one direction. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct xl_gcm xl_gcm;

/* key, and hp_key of header protection, have key_len bytes each, 16 or 32. NULL: no memory, or GnuTLS is to be used,
 * because this build lacks the library or this processor the instructions for AES and GHASH. */
xl_gcm *xl_gcm_new(const uint8_t *key, const uint8_t *hp_key, size_t key_len);
void xl_gcm_free(xl_gcm *); /* wipes; NULL is fine */
/* Encrypts len bytes in place and writes the tag after them. `bound` is authenticated. */
void xl_gcm_seal(const xl_gcm *, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len);
/* Decrypts len bytes in place; the tag follows them. False: they are not authentic, and unchanged. */
bool xl_gcm_open(const xl_gcm *, const uint8_t nonce[12], const uint8_t *bound, size_t bound_len, uint8_t *text,
                 size_t len);
/* AES-ECB of a block with the key of header protection. False: not available for keys of 32 bytes. */
bool xl_gcm_encrypt_block(const xl_gcm *, const uint8_t in[16], uint8_t out[16]);
