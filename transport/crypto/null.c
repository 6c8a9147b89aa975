/* Packet protection that costs nothing, for simulation: nothing is encrypted, headers stay plain, and the tag, of the
 * size of a real one, is a function of key, path and packet number. Keys of another generation, path or packet number
 * do not open a packet, so key updates and duplicated numbers behave as with real protection. Forgery is not
 * detected. */
#include <string.h>

#include "crypto/keys.h"

static void make_tag(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t tag[XL_AEAD_TAG]) {
    uint8_t nonce[XL_AEAD_IV];
    xl_keys_nonce(keys, path_id, pn, nonce);
    memcpy(tag, nonce, XL_AEAD_IV);
    memcpy(tag + XL_AEAD_IV, keys->key, XL_AEAD_TAG - XL_AEAD_IV);
}

void xl_keys_make_null(xl_keys *keys) {
    if (keys)
        keys->is_null = true;
}

size_t xl_null_protect(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t pn_offset,
                       size_t pn_len, size_t payload_len) {
    const size_t len = pn_offset + pn_len + payload_len;
    make_tag(keys, path_id, pn, packet + len);
    keys->ciphers->sealed++;
    return len + XL_AEAD_TAG;
}

int xl_null_unmask(const uint8_t *packet, size_t pn_offset, uint64_t *truncated_pn, size_t *pn_len) {
    *pn_len = (size_t)(packet[0] & XL_PN_LEN_BITS) + 1;
    *truncated_pn = 0;
    for (size_t i = 0; i < *pn_len; i++)
        *truncated_pn = *truncated_pn << 8 | packet[pn_offset + i];
    return 0;
}

ssize_t xl_null_open(const xl_keys *keys, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t packet_len,
                     size_t pn_offset, size_t pn_len, uint8_t **payload) {
    uint8_t tag[XL_AEAD_TAG];
    make_tag(keys, path_id, pn, tag);
    if (memcmp(tag, packet + packet_len - XL_AEAD_TAG, XL_AEAD_TAG) != 0)
        return -1;
    *payload = packet + pn_offset + pn_len;
    return (ssize_t)(packet_len - pn_offset - pn_len - XL_AEAD_TAG);
}
