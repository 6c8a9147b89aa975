/* Packets of the emulated links and the pool that their memory comes from.
 *
 * A packet has one owner at a time: whoever took it from the pool, then the link it was enqueued on, then whoever
 * pulled it from that link. The last owner gives it back to the pool. In the steady state nothing is allocated. */
#ifndef RAILYARD_LINK_PACKET_H
#define RAILYARD_LINK_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one delivery opportunity: an Ethernet payload of 1500 and the 4 bytes of the TUN header (Mahimahi's unit).
 */
#define LINK_OPPORTUNITY_BYTES 1504u
/* What each packet counts more than its IP length, in opportunities, queue limits and logs. */
#define LINK_HEADER_BYTES 4u
/* The longest packet that a buffer takes; longer than an opportunity, so that an oversize packet is seen as such. */
#define LINK_PACKET_CAPACITY 2000u

struct link_packet {
    struct link_packet *next; /* in the list that owns the packet */
    uint64_t arrival_us;      /* when it arrived at the queue: entry into the link plus delay; set by the link */
    uint64_t due_us; /* when the link delivers it (time of the opportunity that completes it); set by the link */
    bool direct;     /* past the queue, if that is empty: light.h; set by the link */
    uint32_t length; /* bytes of the IP packet in data, without the 4 bytes that links add */
    /* The driver's, carried along unread: the packet's checksum over the bytes from checksum_start on is still to be
     * put at checksum_start + checksum_offset, which holds the pseudo header's sum. start 0 = it is complete. */
    uint16_t checksum_start;
    uint16_t checksum_offset;
    uint8_t data[LINK_PACKET_CAPACITY];
};

/* Size that counts: IP length + 4. */
static inline uint32_t link_packet_bytes(const struct link_packet *packet) {
    return packet->length + LINK_HEADER_BYTES;
}

/* A singly linked FIFO of packets. */
struct link_fifo {
    struct link_packet *head;
    struct link_packet *tail;
    size_t packets;
    uint64_t bytes; /* sum of link_packet_bytes */
};

void link_fifo_push(struct link_fifo *fifo, struct link_packet *packet);
/* The oldest packet, or NULL. */
struct link_packet *link_fifo_pop(struct link_fifo *fifo);

struct link_pool;

/* limit_packets bounds the packets outside the pool at one time; 0 = bounded by memory only. NULL: no memory. */
struct link_pool *link_pool_new(size_t limit_packets);
/* Frees the pool and every packet that came from it, whoever holds it. */
void link_pool_free(struct link_pool *pool);
/* A packet with undefined contents, or NULL when the limit or the memory is exhausted. */
struct link_packet *link_pool_get(struct link_pool *pool);
/* Takes the packet back; NULL is allowed. */
void link_pool_put(struct link_pool *pool, struct link_packet *packet);
/* Packets that are outside the pool now: tests and fuzzing compare it with what a link says is inside. */
size_t link_pool_in_use(const struct link_pool *pool);

#endif
