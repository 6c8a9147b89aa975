#include "xlink/quic_lb.h"

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#define BLOCK       16
#define SINGLE_PASS 16 /* bytes of server ID and nonce that are one AES block */

struct xl_lb {
    size_t count, own_octets;
    xl_lb_config config[XL_LB_CONFIGS_MAX];
    gnutls_cipher_hd_t cipher[XL_LB_CONFIGS_MAX]; /* NULL: plaintext */
};

static size_t plaintext_bytes(const xl_lb_config *c) {
    return (size_t)c->server_id_bytes + c->nonce_bytes;
}

static bool is_valid(const xl_lb_config *c, size_t own_octets) {
    return c->rotation < XL_LB_UNROUTABLE && c->server_id_bytes >= 1 && c->server_id_bytes <= XL_LB_SERVER_ID_MAX &&
           c->nonce_bytes >= XL_LB_NONCE_MIN && c->nonce_bytes <= XL_LB_NONCE_MAX &&
           plaintext_bytes(c) + own_octets <= XL_LB_PLAINTEXT_MAX;
}

/* GnuTLS offers no raw AES-ECB: CBC of a single block under a zero IV is the same function. */
static int open_cipher(xl_lb *lb, size_t i) {
    uint8_t zero[BLOCK] = {0};
    const gnutls_datum_t key = {lb->config[i].key, XL_LB_KEY_BYTES}, iv = {zero, sizeof zero};
    if (gnutls_cipher_init(&lb->cipher[i], GNUTLS_CIPHER_AES_128_CBC, &key, &iv) == 0)
        return 0;
    lb->cipher[i] = NULL;
    return XL_ERR_CRYPTO;
}

static int take_configs(xl_lb *lb, const xl_lb_config *configs, size_t count) {
    bool used[XL_LB_UNROUTABLE] = {false};
    if (count < 1 || count > XL_LB_CONFIGS_MAX)
        return XL_ERR_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(&configs[i], lb->own_octets) || used[configs[i].rotation])
            return XL_ERR_ARGUMENT;
        used[configs[i].rotation] = true;
        lb->config[i] = configs[i];
        lb->count = i + 1;
        if (configs[i].has_key && open_cipher(lb, i) != 0)
            return XL_ERR_CRYPTO;
    }
    return 0;
}

xl_lb *xl_lb_new(const xl_lb_config *configs, size_t count, size_t own_octets, int *error) {
    xl_lb *lb = calloc(1, sizeof *lb);
    *error = XL_ERR_MEMORY;
    if (!lb)
        return NULL;
    lb->own_octets = own_octets;
    *error = take_configs(lb, configs, count);
    if (*error == 0)
        return lb;
    xl_lb_free(lb);
    return NULL;
}

void xl_lb_free(xl_lb *lb) {
    if (!lb)
        return;
    for (size_t i = 0; i < lb->count; i++)
        if (lb->cipher[i])
            gnutls_cipher_deinit(lb->cipher[i]);
    gnutls_memset(lb, 0, sizeof *lb);
    free(lb);
}

size_t xl_lb_config_count(const xl_lb *lb) {
    return lb->count;
}

const xl_lb_config *xl_lb_config_at(const xl_lb *lb, size_t index) {
    return &lb->config[index];
}

static size_t find_config(const xl_lb *lb, uint8_t first_octet) {
    size_t i = 0;
    while (i < lb->count && lb->config[i].rotation != first_octet >> 5)
        i++;
    return i;
}

size_t xl_lb_cid_bytes(const xl_lb *lb, uint8_t first_octet) {
    size_t i = find_config(lb, first_octet);
    return i < lb->count ? 1 + plaintext_bytes(&lb->config[i]) + lb->own_octets : 0;
}

/* ---- The four-pass algorithm (section 5.4.2) ---- */

/* The left half is the first len/2 bytes, rounded up, the right half the last ones. If len is odd, they share the
 * middle byte: its high nibble is in the left half, its low nibble in the right one; the other nibbles are zero. */
typedef struct {
    uint8_t left[BLOCK], right[BLOCK];
    size_t len, half;
} feistel;

static feistel split(const uint8_t *text, size_t len) {
    feistel f = {.len = len, .half = (len + 1) / 2};
    memcpy(f.left, text, f.half);
    memcpy(f.right, text + len / 2, f.half);
    if (len % 2) {
        f.left[f.half - 1] &= 0xf0;
        f.right[0] &= 0x0f;
    }
    return f;
}

static void join(const feistel *f, uint8_t *text) {
    memcpy(text, f->left, f->half);
    if (f->len % 2) {
        text[f->half - 1] |= f->right[0];
        memcpy(text + f->half, f->right + 1, f->half - 1);
    } else {
        memcpy(text + f->half, f->right, f->half);
    }
}

/* One pass: XORs one half with the encryption of the other, expanded by the length and the number of the pass. Odd
 * passes change the right half. */
static int pass(gnutls_cipher_hd_t cipher, feistel *f, uint8_t number) {
    bool to_right = number % 2;
    uint8_t *from = to_right ? f->left : f->right, *to = to_right ? f->right : f->left;
    uint8_t zero[BLOCK] = {0}, block[BLOCK] = {0};
    memcpy(block, from, f->half);
    block[14] = (uint8_t)f->len;
    block[15] = number;
    gnutls_cipher_set_iv(cipher, zero, sizeof zero);
    if (gnutls_cipher_encrypt(cipher, block, sizeof block) != 0)
        return XL_ERR_CRYPTO;
    for (size_t i = 0; i < f->half; i++)
        to[i] ^= block[i];
    if (f->len % 2 && to_right)
        to[0] &= 0x0f;
    else if (f->len % 2)
        to[f->half - 1] &= 0xf0;
    return 0;
}

static int encrypt(gnutls_cipher_hd_t cipher, uint8_t *text, size_t len) {
    uint8_t zero[BLOCK] = {0};
    if (len == SINGLE_PASS) {
        gnutls_cipher_set_iv(cipher, zero, sizeof zero);
        return gnutls_cipher_encrypt(cipher, text, len) == 0 ? 0 : XL_ERR_CRYPTO;
    }
    feistel f = split(text, len);
    for (uint8_t number = 1; number <= 4; number++)
        if (pass(cipher, &f, number) != 0)
            return XL_ERR_CRYPTO;
    join(&f, text);
    return 0;
}

static int decrypt(gnutls_cipher_hd_t cipher, uint8_t *text, size_t len, size_t wanted) {
    uint8_t zero[BLOCK] = {0};
    if (len == SINGLE_PASS) {
        gnutls_cipher_set_iv(cipher, zero, sizeof zero);
        return gnutls_cipher_decrypt(cipher, text, len) == 0 ? 0 : XL_ERR_CRYPTO;
    }
    feistel f = split(text, len);
    uint8_t last = wanted <= len / 2 ? 2 : 1; /* three passes suffice if the left half contains all of it */
    for (uint8_t number = 4; number >= last; number--)
        if (pass(cipher, &f, number) != 0)
            return XL_ERR_CRYPTO;
    join(&f, text);
    return 0;
}

/* ---- Connection IDs ---- */

int xl_lb_encode(const xl_lb *lb, const uint8_t *server_id, const uint8_t *nonce, uint8_t random,
                 uint8_t cid[XL_MAX_CID_BYTES]) {
    const xl_lb_config *c = &lb->config[0];
    size_t len = plaintext_bytes(c);
    uint8_t low = c->encode_length ? (uint8_t)(len + lb->own_octets) : random & 0x1f;
    cid[0] = (uint8_t)(c->rotation << 5 | low);
    memcpy(cid + 1, server_id, c->server_id_bytes);
    memcpy(cid + 1 + c->server_id_bytes, nonce, c->nonce_bytes);
    if (lb->cipher[0] && encrypt(lb->cipher[0], cid + 1, len) != 0)
        return XL_ERR_CRYPTO;
    return (int)(1 + len);
}

int xl_lb_decode(const xl_lb *lb, const uint8_t *cid, size_t len, uint8_t server_id[XL_LB_SERVER_ID_MAX]) {
    if (len == 0)
        return XL_ERR_ARGUMENT;
    size_t i = find_config(lb, cid[0]);
    if (i == lb->count || len < 1 + plaintext_bytes(&lb->config[i]))
        return XL_ERR_ARGUMENT;
    const xl_lb_config *c = &lb->config[i];
    uint8_t text[XL_LB_PLAINTEXT_MAX];
    memcpy(text, cid + 1, plaintext_bytes(c));
    if (lb->cipher[i] && decrypt(lb->cipher[i], text, plaintext_bytes(c), c->server_id_bytes) != 0)
        return XL_ERR_ARGUMENT;
    memcpy(server_id, text, c->server_id_bytes);
    return c->server_id_bytes;
}
