/* What a network card's offloads do, done here so that links see every packet as it would be on the wire.
 *
 * Segmentation (TSO, USO): the kernel hands over super-packets of up to 64 kB that share their headers; each becomes
 * the packets that a card would have sent. Coalescing (UDP only): consecutive packets of one UDP flow that leave at the
 * same time enter the kernel as one super-packet, which it takes apart again for every socket that did not ask for
 * UDP_GRO: receivers see the same datagrams with the same times, for a fraction of the processor time. TCP segments are
 * never merged, for a merged segment is acknowledged once.
 *
 * Sans-IO; the header of a super-packet is that of virtio-net (Virtual I/O Device 1.2, section 5.1.6), which TUN
 * devices put before each packet. Contents come from any program with a raw socket, so nothing in them is trusted. */
#ifndef RAILYARD_MPSHELL_OFFLOAD_H
#define RAILYARD_MPSHELL_OFFLOAD_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "emulator/link/packet.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define MP_SUPER_BYTES   65536u
#define MP_GROUP_PACKETS 44u /* of 1500 bytes: what one super-packet holds */

/* A super-packet, or what is left of one while it is taken apart. */
typedef struct {
    const uint8_t *data;
    size_t length;
    size_t transport; /* offset of the TCP or UDP header */
    size_t headers;   /* bytes of all headers */
    size_t taken;     /* payload bytes that are in segments already */
    size_t segment;   /* payload bytes of each segment but the last */
    uint16_t checksum_offset;
    uint16_t count; /* segments made */
} mp_super;

/* Starts to take apart the super-packet of length bytes at data (borrowed), as header describes it. false if header and
 * contents do not fit together; such a packet cannot be sent. */
bool mp_super_open(mp_super *super, const struct virtio_net_hdr *header, const uint8_t *data, size_t length);
/* Makes the next segment in packet; false if there is no more. Its checksum is still to be computed. */
bool mp_super_next(mp_super *super, link_packet *packet);

/* Packets that go into the kernel in one write. */
typedef struct {
    link_packet *packets[MP_GROUP_PACKETS];
    size_t count;
    size_t payload; /* bytes of UDP payload, of all packets */
    size_t headers; /* of each packet; 0 = the first cannot be merged with others */
    bool closed;    /* takes no more: a shorter packet ends a super-packet */
} mp_group;

/* Takes the packet in if it can be written together with those that are there; an empty group takes any packet.
 * may_merge: whether the device understands UDP super-packets. */
bool mp_group_add(mp_group *group, link_packet *packet, bool may_merge);
/* Fills header and vectors (1 + MP_GROUP_PACKETS of them) for one writev and returns their number. The first packet's
 * headers are those of the super-packet until mp_group_restore. */
int mp_group_vectors(mp_group *group, struct virtio_net_hdr *header, struct iovec *vectors);
void mp_group_restore(mp_group *group);

/* Computes the checksum that is still owed in the copy of a packet, as far as length bytes of it reach: for captures.
 */
void mp_checksum_complete(uint8_t *data, size_t length, uint16_t start, uint16_t offset);

#endif
