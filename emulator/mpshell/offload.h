/* Does the work of a network card's offloads, so that links see every packet as it would be on the wire.
 *
 * Segmentation (TSO, USO): the kernel hands over super-packets of up to 64 kB that share their headers; each becomes
 * the packets that a card would have sent. Coalescing (UDP only): consecutive packets of one UDP flow that leave at the
 * same time enter the kernel as one super-packet, which it takes apart again for every socket that did not ask for
 * UDP_GRO: receivers see the same datagrams with the same times, for a fraction of the processor time. TCP segments are
 * never merged, because a merged segment is acknowledged once.
 *
 * Sans-IO; the header of a super-packet is that of virtio-net (Virtual I/O Device 1.2, section 5.1.6), which TUN
 * devices put before each packet. Contents come from any program with a raw socket, so nothing in them is trusted. */
#pragma once

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
#define MP_GROUP_PACKETS 44u /* packets of 1500 bytes that fit into a super-packet */

/* A super-packet while it is split into segments. */
typedef struct {
    const uint8_t *data;
    size_t length;
    size_t transport; /* offset of the TCP or UDP header */
    size_t headers;   /* bytes of all headers */
    size_t taken;     /* payload bytes that are already in segments */
    size_t segment;   /* payload bytes of each segment except the last */
    uint16_t checksum_offset;
    uint16_t count; /* segments made */
} mp_super;

/* Starts to split the super-packet of `length` bytes at data (borrowed), which `header` describes. False if header and
 * contents do not match; such a packet cannot be sent. */
bool mp_super_open(mp_super *super, const struct virtio_net_hdr *header, const uint8_t *data, size_t length);
/* Makes the next segment in packet, whose checksum is still to be computed. False if there are no more. */
bool mp_super_next(mp_super *super, link_packet *packet);

/* Packets that enter the kernel in one write. */
typedef struct {
    link_packet *packets[MP_GROUP_PACKETS];
    size_t count;
    size_t payload; /* bytes of UDP payload of all packets */
    size_t headers; /* bytes, of each packet; 0: the first cannot be merged */
    bool closed;    /* takes no more packets, because a shorter one ends a super-packet */
} mp_group;

/* Adds the packet if it can be written together with the others; an empty group takes any packet. may_merge: whether
 * the device supports UDP super-packets. */
bool mp_group_add(mp_group *group, link_packet *packet, bool may_merge);
/* Fills header and vectors (1 + MP_GROUP_PACKETS of them) for one writev and returns their number. The first packet's
 * headers are those of the super-packet until mp_group_restore. */
int mp_group_vectors(mp_group *group, struct virtio_net_hdr *header, struct iovec *vectors);
void mp_group_restore(mp_group *group);

/* For captures: completes the checksum in a copy of a packet of `length` bytes. start 0: it is complete. */
void mp_checksum_complete(uint8_t *data, size_t length, uint16_t start, uint16_t offset);
