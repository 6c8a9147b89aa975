#include "endpoint/cid_map.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

struct xl_cid_node {
    xl_cid_node *next; /* in its bucket */
    xl_cid cid;
    xl_connection *connection;
    xl_cid_node *own_prev, *own_next; /* list of the same connection */
};

static size_t bucket_of(const xl_cid_map *m, const xl_cid *cid) {
    uint64_t h = m->key[0] ^ cid->len;
    for (size_t i = 0; i < cid->len; i += 8) {
        uint64_t word = 0;
        if (cid->len - i >= 8)
            memcpy(&word, cid->id + i, 8);
        else
            memcpy(&word, cid->id + i, cid->len - i);
        h = xl_hash_mix(h ^ word ^ m->key[1]);
    }
    return (size_t)h & (m->bucket_count - 1);
}

int xl_cid_map_init(xl_cid_map *m, uint64_t key0, uint64_t key1) {
    *m = (xl_cid_map){.bucket_count = FIRST_BUCKETS, .key = {key0, key1}};
    m->bucket = calloc(FIRST_BUCKETS, sizeof(xl_cid_node *));
    return m->bucket ? 0 : XL_ERR_MEMORY;
}

void xl_cid_map_free(xl_cid_map *m) {
    for (size_t i = 0; m->bucket && i < m->bucket_count; i++)
        for (xl_cid_node *n = m->bucket[i], *next; n; n = next) {
            next = n->next;
            free(n);
        }
    free(m->bucket);
    m->bucket = NULL;
}

static void grow(xl_cid_map *m) {
    size_t old_count = m->bucket_count;
    xl_cid_node **old = m->bucket, **fresh = calloc(old_count * 2, sizeof(xl_cid_node *));
    if (!fresh)
        return; /* the chains get longer, no more */
    m->bucket = fresh;
    m->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++)
        for (xl_cid_node *n = old[i], *next; n; n = next) {
            next = n->next;
            size_t at = bucket_of(m, &n->cid);
            n->next = fresh[at];
            fresh[at] = n;
        }
    free(old);
}

static xl_cid_node **find(const xl_cid_map *m, const xl_cid *cid) {
    xl_cid_node **at = &m->bucket[bucket_of(m, cid)];
    while (*at && !xl_cid_equal(&(*at)->cid, cid))
        at = &(*at)->next;
    return at;
}

static xl_cid_node **head_of(const xl_cid_map *m, xl_connection *c) {
    return m->holds_tokens ? &c->slot.token_head : &c->slot.cid_head;
}

static void give(const xl_cid_map *m, xl_cid_node *n, xl_connection *c) {
    xl_cid_node **head = head_of(m, c);
    n->connection = c;
    n->own_prev = NULL;
    n->own_next = *head;
    if (n->own_next)
        n->own_next->own_prev = n;
    *head = n;
}

static void take_away(const xl_cid_map *m, xl_cid_node *n) {
    if (n->own_prev)
        n->own_prev->own_next = n->own_next;
    else
        *head_of(m, n->connection) = n->own_next;
    if (n->own_next)
        n->own_next->own_prev = n->own_prev;
}

int xl_cid_map_put(xl_cid_map *m, const xl_cid *cid, xl_connection *c) {
    xl_cid_node **at = find(m, cid);
    if (*at) {
        take_away(m, *at);
        give(m, *at, c);
        return 0;
    }
    xl_cid_node *n = malloc(sizeof *n);
    if (!n)
        return XL_ERR_MEMORY;
    *n = (xl_cid_node){.cid = *cid};
    give(m, n, c);
    *at = n;
    if (++m->count > 2 * m->bucket_count)
        grow(m);
    return 0;
}

xl_connection *xl_cid_map_get(const xl_cid_map *m, const xl_cid *cid) {
    xl_cid_node **at = find(m, cid);
    return *at ? (*at)->connection : NULL;
}

void xl_cid_map_remove(xl_cid_map *m, const xl_cid *cid) {
    xl_cid_node **at = find(m, cid), *n = *at;
    if (!n)
        return;
    take_away(m, n);
    *at = n->next;
    free(n);
    m->count--;
}

void xl_cid_map_remove_all_of(xl_cid_map *m, xl_connection *c) {
    while (*head_of(m, c))
        xl_cid_map_remove(m, &(*head_of(m, c))->cid);
}
