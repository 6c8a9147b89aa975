#include "endpoint/clients.h"

#include <stdlib.h>
#include <string.h>

#include "endpoint/cid_map.h"

#define MOST_BUCKETS 65536

int xl_clients_init(xl_clients *t, size_t connections, const uint64_t key[2]) {
    *t = (xl_clients){.bucket_count = 64, .key = {key[0], key[1]}};
    while (t->bucket_count < connections && t->bucket_count < MOST_BUCKETS)
        t->bucket_count *= 2;
    t->bucket = calloc(t->bucket_count, sizeof(xl_client *));
    return t->bucket ? 0 : XL_ERR_MEMORY;
}

void xl_clients_free(xl_clients *t) {
    for (size_t i = 0; t->bucket && i < t->bucket_count; i++)
        for (xl_client *c = t->bucket[i], *next; c; c = next) {
            next = c->next;
            free(c);
        }
    free(t->bucket);
    t->bucket = NULL;
}

static xl_client **bucket_of(const xl_clients *t, const xl_addr *a) {
    uint64_t words[2] = {0, 0};
    memcpy(words, a->ip, xl_addr_client_bytes(a));
    uint64_t h = xl_hash_mix(xl_hash_mix(words[0] ^ t->key[0]) ^ words[1] ^ t->key[1]);
    return &t->bucket[(size_t)h & (t->bucket_count - 1)];
}

xl_client *xl_clients_find(const xl_clients *t, const xl_addr *a) {
    xl_client *c = t->bucket ? *bucket_of(t, a) : NULL;
    while (c && !xl_addr_same_client(&c->address, a))
        c = c->next;
    return c;
}

xl_client *xl_clients_add(xl_clients *t, const xl_addr *a, bool is_proven) {
    xl_client *c = xl_clients_find(t, a);
    if (!c) {
        xl_client **bucket = bucket_of(t, a);
        c = calloc(1, sizeof *c);
        if (!c)
            return NULL;
        c->address = *a;
        c->next = *bucket;
        *bucket = c;
    }
    c->connections++;
    c->proven += is_proven;
    return c;
}

void xl_clients_remove(xl_clients *t, xl_client *c, bool is_proven) {
    c->proven -= is_proven;
    if (--c->connections > 0)
        return;
    xl_client **at = bucket_of(t, &c->address);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}
