/* How many connections each client address has, to limit them. A client is an IPv4 address or the first 64 bits of an
 * IPv6 address (xl_addr_client_bytes()), because a host can use all addresses of its /64. Only connections whose
 * address is proven (RFC 9000 section 8.1) can get a client refused: the others may be forged in its name. */
#pragma once

#include "xlink/xlink.h"

typedef struct xl_client {
    struct xl_client *next;     /* in its bucket */
    xl_addr address;            /* address of its first connection */
    size_t connections, proven; /* proven: those of them whose address is proven */
} xl_client;

typedef struct {
    xl_client **bucket;
    size_t bucket_count; /* a power of two */
    uint64_t key[2];     /* of the hash, so that clients cannot aim at one bucket */
} xl_clients;

/* Returns 0 or XL_ERR_MEMORY. connections: largest number of connections. */
int xl_clients_init(xl_clients *, size_t connections, const uint64_t key[2]);
void xl_clients_free(xl_clients *);
xl_client *xl_clients_find(const xl_clients *, const xl_addr *); /* NULL: no connections */
/* Counts one more connection. Returns NULL if out of memory. */
xl_client *xl_clients_add(xl_clients *, const xl_addr *, bool is_proven);
void xl_clients_remove(xl_clients *, xl_client *, bool is_proven);
