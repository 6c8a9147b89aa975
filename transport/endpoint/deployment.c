#include "xlink/deployment.h"

#include <string.h>

#include "crypto/crypto.h"
#include "crypto/random.h"
#include "path/cids.h"

static uint32_t rotate(uint32_t x, unsigned k) {
    return x << k | x >> (32 - k);
}

static void sip_round(uint32_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 5) ^ v[0];
    v[0] = rotate(v[0], 16);
    v[2] += v[3];
    v[3] = rotate(v[3], 8) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 7) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 13) ^ v[2];
    v[2] = rotate(v[2], 16);
}

static uint32_t word_at(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint32_t xl_cid_hash(xl_hash_key key, const uint8_t cid[XL_HASHED_CID_BYTES]) {
    uint32_t v[4] = {key.word[0], key.word[1], key.word[0] ^ 0x6c796765, key.word[1] ^ 0x74656462};
    const uint32_t message[3] = {word_at(cid), word_at(cid + 4), (uint32_t)XL_HASHED_CID_BYTES << 24};
    for (int i = 0; i < 3; i++) {
        v[3] ^= message[i];
        sip_round(v);
        v[0] ^= message[i];
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[1] ^ v[3];
}

int xl_static_keys_from(const uint8_t secret[XL_STATIC_SECRET_BYTES], xl_static_keys *keys) {
    uint8_t hash[8], balancer[16];
    if (xl_random_subkey(secret, "stateless reset tokens", keys->reset, sizeof keys->reset) ||
        xl_random_subkey(secret, "retry tokens", keys->retry, sizeof keys->retry) ||
        xl_random_subkey(secret, "session tickets", keys->ticket, sizeof keys->ticket) ||
        xl_random_subkey(secret, "process octets", hash, sizeof hash) ||
        xl_random_subkey(secret, "balancer", balancer, sizeof balancer)) {
        memset(keys, 0, sizeof *keys);
        return XL_ERR_CRYPTO;
    }
    keys->cid_hash = (xl_hash_key){{word_at(hash), word_at(hash + 4)}};
    for (int i = 0; i < 2; i++)
        keys->balancer[i] = (uint64_t)word_at(balancer + 8 * i) << 32 | word_at(balancer + 8 * i + 4);
    return 0;
}

const char *xl_deployment_check(const xl_deployment *d) {
    if (d->workers < 1 || d->workers > XL_WORKERS_MAX || d->worker >= d->workers)
        return "the number of workers is out of range";
    const xl_static_keys none = {0};
    if (xl_is_equal((const uint8_t *)&d->keys, (const uint8_t *)&none, sizeof none))
        return "it has no secret";
    for (size_t i = 0; i < xl_lb_config_count(d->lb); i++) {
        const xl_lb_config *c = xl_lb_config_at(d->lb, i);
        if (xl_lb_cid_bytes(d->lb, (uint8_t)(c->rotation << 5)) != 2u + c->server_id_bytes + c->nonce_bytes)
            return "its connection IDs have no process octet";
        if (1u + c->server_id_bytes + c->nonce_bytes < XL_HASHED_CID_BYTES)
            return "server ID and nonce are fewer than seven bytes together";
    }
    return NULL;
}

size_t xl_deployment_make_cid(const xl_deployment *d, const uint8_t *nonce, uint8_t random,
                              uint8_t cid[XL_MAX_CID_BYTES]) {
    int len = xl_lb_encode(d->lb, d->server_id, nonce, random, cid);
    if (len < 0) {
        memcpy(cid, nonce, XL_LB_UNROUTABLE_BYTES);
        cid[0] = XL_LB_UNROUTABLE << 5 | (XL_LB_UNROUTABLE_BYTES - 1);
        return XL_LB_UNROUTABLE_BYTES;
    }
    cid[len] = (uint8_t)(d->worker ^ xl_cid_hash(d->keys.cid_hash, cid));
    return (size_t)len + 1;
}

size_t xl_deployment_cid_bytes(const xl_deployment *d, uint8_t first_octet) {
    size_t bytes = xl_lb_cid_bytes(d->lb, first_octet);
    return bytes ? bytes : XL_LOCAL_CID_BYTES;
}

unsigned xl_deployment_worker_of(const xl_deployment *d, const uint8_t *cid, size_t len) {
    if (len < XL_HASHED_CID_BYTES)
        return d->worker;
    uint32_t hash = xl_cid_hash(d->keys.cid_hash, cid);
    if (len == xl_lb_cid_bytes(d->lb, cid[0])) {
        unsigned worker = (cid[len - 1] ^ hash) & 0xff;
        if (worker < d->workers)
            return worker;
    }
    return (hash >> 8) % d->workers;
}

bool xl_deployment_is_own(const xl_deployment *d, const uint8_t *cid, size_t len) {
    uint8_t id[XL_LB_SERVER_ID_MAX];
    if (len < XL_HASHED_CID_BYTES || len != xl_lb_cid_bytes(d->lb, cid[0]))
        return false;
    int id_bytes = xl_lb_decode(d->lb, cid, len, id);
    return id_bytes > 0 && memcmp(id, d->server_id, (size_t)id_bytes) == 0 &&
           xl_deployment_worker_of(d, cid, len) == d->worker;
}
