/* Packets of the emulated links, and the pool that allocates them.
 *
 * A packet has one owner at a time: the caller that took it from the pool, then the link, then the caller that pulled
 * it from the link. The last owner returns it to the pool. In the steady state nothing is allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one delivery opportunity: an Ethernet payload of 1500 and the 4 bytes of the TUN header (Mahimahi's unit).
 */
#define LINK_OPPORTUNITY_BYTES 1504u
/* Added to each packet's IP length in opportunities, queue limits and logs. */
#define LINK_HEADER_BYTES 4u
/* Capacity of a packet's buffer: larger than an opportunity, so that oversize packets are recognised. */
#define LINK_PACKET_CAPACITY 2000u

typedef struct link_packet {
    struct link_packet *next; /* in the list that owns the packet */
    uint64_t arrival_us;      /* when it arrived at the queue: entry into the link plus delay; set by the link */
    uint64_t due_us; /* when the link delivers it: time of the opportunity that completes it; set by the link */
    bool direct;     /* bypasses the queue if it is empty (light.h); set by the link */
    bool is_cross;   /* others' traffic, which nobody receives (cross.h); set by the link */
    uint32_t length; /* bytes of the IP packet in data, without the 4 bytes that links add */
    /* For the driver; the link copies it to duplicates. Number of the packet's route through several links, and of the
     * present link on it (route.h). */
    uint16_t route;
    uint8_t hop;
    /* For the driver; the link does not read it. The checksum over the bytes from checksum_start on is still to be
     * written at checksum_start + checksum_offset, which has the sum of the pseudo header. start 0: it is complete. */
    uint16_t checksum_start;
    uint16_t checksum_offset;
    uint8_t data[LINK_PACKET_CAPACITY];
} link_packet;

/* IP length + 4. */
static inline uint32_t link_packet_bytes(const link_packet *packet) {
    return packet->length + LINK_HEADER_BYTES;
}

/* A singly linked FIFO of packets. */
typedef struct {
    link_packet *head;
    link_packet *tail;
    size_t packets;
    uint64_t bytes; /* sum of link_packet_bytes */
} link_fifo;

void link_fifo_push(link_fifo *fifo, link_packet *packet);
/* Removes and returns the oldest packet, or returns NULL. */
link_packet *link_fifo_pop(link_fifo *fifo);

typedef struct link_pool link_pool;

/* limit_packets: maximum of packets outside the pool at one time; 0: no limit. Returns NULL without memory. */
link_pool *link_pool_new(size_t limit_packets);
/* Frees the pool and all its packets, also those that are in use. */
void link_pool_free(link_pool *pool);
/* Returns a packet with undefined data; NULL: the limit is reached, or there is no memory. */
link_packet *link_pool_get(link_pool *pool);
/* Returns the packet to the pool. NULL is allowed. */
void link_pool_put(link_pool *pool, link_packet *packet);
/* Number of packets outside the pool. Tests and fuzzing compare it with link_stats.inside_packets. */
size_t link_pool_in_use(const link_pool *pool);
