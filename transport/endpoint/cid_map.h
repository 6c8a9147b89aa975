/* Maps a connection ID, or the peer's stateless reset token, to its connection. The hash is keyed, so that a peer that
 * chooses its own initial CIDs cannot aim at one bucket. */
#pragma once

#include "connection/connection.h"

typedef struct xl_cid_node xl_cid_node;

typedef struct {
    xl_cid_node **bucket;
    size_t bucket_count, count;
    uint64_t key[2];
    bool holds_tokens; /* the keys are stateless reset tokens instead of CIDs */
} xl_cid_map;

/* One step of the hash, also for clients.c. */
static inline uint64_t xl_hash_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

int xl_cid_map_init(xl_cid_map *, uint64_t key0, uint64_t key1); /* 0 or XL_ERR_MEMORY */
void xl_cid_map_free(xl_cid_map *);
/* Adds cid or replaces its value. Returns 0 or XL_ERR_MEMORY. */
int xl_cid_map_put(xl_cid_map *, const xl_cid *, xl_connection *);
xl_connection *xl_cid_map_get(const xl_cid_map *, const xl_cid *);
void xl_cid_map_remove(xl_cid_map *, const xl_cid *);
void xl_cid_map_remove_all_of(xl_cid_map *, xl_connection *); /* takes time proportional to their number */
