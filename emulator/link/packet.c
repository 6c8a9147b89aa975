#include "emulator/link/packet.h"

#include <stdlib.h>

#define SLAB_PACKETS 128u

typedef struct packet_slab {
    struct packet_slab *next;
    link_packet packets[SLAB_PACKETS];
} packet_slab;

struct link_pool {
    packet_slab *slabs;
    link_packet *spare;
    size_t in_use;
    size_t limit;
};

void link_fifo_push(link_fifo *fifo, link_packet *packet) {
    packet->next = NULL;
    if (!fifo->tail)
        fifo->head = packet;
    else
        fifo->tail->next = packet;
    fifo->tail = packet;
    fifo->packets++;
    fifo->bytes += link_packet_bytes(packet);
}

link_packet *link_fifo_pop(link_fifo *fifo) {
    link_packet *packet = fifo->head;
    if (!packet)
        return NULL;
    fifo->head = packet->next;
    if (!fifo->head)
        fifo->tail = NULL;
    packet->next = NULL;
    fifo->packets--;
    fifo->bytes -= link_packet_bytes(packet);
    return packet;
}

link_pool *link_pool_new(size_t limit_packets) {
    link_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->limit = limit_packets == 0 ? SIZE_MAX : limit_packets;
    return pool;
}

void link_pool_free(link_pool *pool) {
    if (!pool)
        return;
    while (pool->slabs) {
        packet_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        free(slab);
    }
    free(pool);
}

static bool grow(link_pool *pool) {
    packet_slab *slab = malloc(sizeof *slab);
    if (!slab)
        return false;
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (size_t i = 0; i < SLAB_PACKETS; i++) {
        slab->packets[i].next = pool->spare;
        pool->spare = &slab->packets[i];
    }
    return true;
}

link_packet *link_pool_get(link_pool *pool) {
    if (pool->in_use >= pool->limit || (!pool->spare && !grow(pool)))
        return NULL;
    link_packet *packet = pool->spare;
    pool->spare = packet->next;
    packet->next = NULL;
    packet->checksum_start = 0;
    packet->checksum_offset = 0;
    packet->is_cross = false;
    packet->route = 0;
    packet->hop = 0;
    pool->in_use++;
    return packet;
}

void link_pool_put(link_pool *pool, link_packet *packet) {
    if (!packet)
        return;
    packet->next = pool->spare;
    pool->spare = packet;
    pool->in_use--;
}

size_t link_pool_in_use(const link_pool *pool) {
    return pool->in_use;
}
