#include "crypto/outstanding.h"

#include <string.h>

#include "crypto/crypto.h"

typedef struct {
    uint8_t id[16];
    uint8_t (*ways)[16];
} place;

/* Finds the set of a ticket. A hash is enough as its ID: HMAC keyed by the context binds both. False: HMAC failed. */
static bool find_place(xl_outstanding *o, const uint8_t *ticket, size_t len, const char *context, place *out) {
    uint8_t key[256] = {0}, digest[18];
    const size_t key_len = strnlen(context, sizeof key - 1) + 1;
    memcpy(key, context, key_len - 1);
    if (xl_hmac(key, key_len, ticket, len, digest, sizeof digest) != 0)
        return false;
    memcpy(out->id, digest, sizeof out->id);
    out->id[0] |= 1; /* zero marks an unused place */
    const size_t set = ((size_t)digest[16] << 8 | digest[17]) % XL_OUTSTANDING_SETS;
    out->ways = o->set[set].id;
    return true;
}

void xl_outstanding_add(xl_outstanding *o, const uint8_t *ticket, size_t len, const char *context) {
    place p;
    if (!find_place(o, ticket, len, context, &p))
        return;
    memmove(p.ways[1], p.ways[0], (XL_OUTSTANDING_WAYS - 1) * sizeof p.id);
    memcpy(p.ways[0], p.id, sizeof p.id);
}

bool xl_outstanding_take(xl_outstanding *o, const uint8_t *ticket, size_t len, const char *context) {
    place p;
    if (!find_place(o, ticket, len, context, &p))
        return false;
    for (size_t i = 0; i < XL_OUTSTANDING_WAYS; i++) {
        if (memcmp(p.ways[i], p.id, sizeof p.id) != 0)
            continue;
        memset(p.ways[i], 0, sizeof p.id);
        return true;
    }
    return false;
}
