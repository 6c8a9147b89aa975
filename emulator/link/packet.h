/* Packets of the emulated links and the pool that their memory comes from.
 *
 * A packet has one owner at a time: whoever took it from the pool, then the link it was enqueued on, then whoever
 * pulled it from that link. The last owner gives it back to the pool. In the steady state nothing is allocated. */
#ifndef RAILYARD_LINK_PACKET_H
#define RAILYARD_LINK_PACKET_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of one delivery opportunity: an Ethernet payload of 1500 and the 4 bytes of the TUN header (Mahimahi's unit).
 */
#define XL_LINK_OPPORTUNITY_BYTES 1504u
/* What each packet counts more than its IP length, in opportunities, queue limits and logs. */
#define XL_LINK_HEADER_BYTES 4u
/* The longest packet that a buffer takes; longer than an opportunity, so that an oversize packet is seen as such. */
#define XL_LINK_PACKET_CAPACITY 2000u

struct xl_link_packet {
    struct xl_link_packet *next; /* in the list that owns the packet */
    uint64_t arrival_us;         /* when it arrived at the queue: entry into the link plus delay; set by the link */
    uint64_t due_us; /* when the link delivers it (time of the opportunity that completes it); set by the link */
    uint32_t length; /* bytes of the IP packet in data, without the 4 bytes that links add */
    /* The driver's, carried along unread: the packet's checksum over the bytes from checksum_start on is still to be
     * put at checksum_start + checksum_offset, which holds the pseudo header's sum. start 0 = it is complete. */
    uint16_t checksum_start;
    uint16_t checksum_offset;
    uint8_t data[XL_LINK_PACKET_CAPACITY];
};

/* Size that counts: IP length + 4. */
static inline uint32_t xl_link_packet_bytes(const struct xl_link_packet *packet) {
    return packet->length + XL_LINK_HEADER_BYTES;
}

/* A singly linked FIFO of packets. */
struct xl_link_fifo {
    struct xl_link_packet *head;
    struct xl_link_packet *tail;
    size_t packets;
    uint64_t bytes; /* sum of xl_link_packet_bytes */
};

void xl_link_fifo_push(struct xl_link_fifo *fifo, struct xl_link_packet *packet);
/* The oldest packet, or NULL. */
struct xl_link_packet *xl_link_fifo_pop(struct xl_link_fifo *fifo);

struct xl_link_pool;

/* limit_packets bounds the packets outside the pool at one time; 0 = bounded by memory only. NULL: no memory. */
struct xl_link_pool *xl_link_pool_new(size_t limit_packets);
/* Frees the pool and every packet that came from it, whoever holds it. */
void xl_link_pool_free(struct xl_link_pool *pool);
/* A packet with undefined contents, or NULL when the limit or the memory is exhausted. */
struct xl_link_packet *xl_link_pool_get(struct xl_link_pool *pool);
/* Takes the packet back; NULL is allowed. */
void xl_link_pool_put(struct xl_link_pool *pool, struct xl_link_packet *packet);
/* Packets that are outside the pool now: tests and fuzzing compare it with what a link says is inside. */
size_t xl_link_pool_in_use(const struct xl_link_pool *pool);

#endif
