#include "emulator/mpshell/offload.h"

#include <netinet/in.h>
#include <string.h>

#define IPV4_HEADER     20u
#define IPV6_HEADER     40u
#define UDP_HEADER      8u
#define TCP_MIN_HEADER  20u
#define UDP_CHECKSUM_AT 6u
#define TCP_CHECKSUM_AT 16u
#define TCP_FLAGS_AT    13u
#define TCP_FIN_PSH     0x09u
#define TCP_CWR         0x80u
#define DONT_FRAGMENT   0x40u /* in byte 6 of an IPv4 header */

static uint16_t get16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, size_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *at) {
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put32(uint8_t *at, uint32_t value) {
    put16(at, value >> 16);
    put16(at + 2, value & 0xffffu);
}

/* The one's complement sum of RFC 1071, not yet complemented. */
static uint64_t sum(const uint8_t *at, size_t length, uint64_t total) {
    size_t i = 0;
    for (; i + 4 <= length; i += 4) {
        uint32_t word;
        memcpy(&word, at + i, 4);
        total += __builtin_bswap32(word);
    }
    for (; i + 2 <= length; i += 2)
        total += get16(at + i);
    return i < length ? total + ((uint64_t)at[i] << 8) : total;
}

static uint16_t fold(uint64_t total) {
    while (total >> 16 != 0)
        total = (total & 0xffffu) + (total >> 16);
    return (uint16_t)total;
}

static bool is_ipv6(const uint8_t *data) {
    return data[0] >> 4 == 6;
}

/* Writes length and checksum of the IP header, and the pseudo header's sum as the start of the transport checksum. */
static void finish_headers(uint8_t *data, size_t length, size_t transport, uint16_t checksum_offset, uint8_t protocol) {
    uint64_t pseudo = (uint64_t)protocol + (length - transport);
    if (is_ipv6(data)) {
        put16(data + 4, length - IPV6_HEADER);
        pseudo = sum(data + 8, 32, pseudo);
    } else {
        size_t header = (size_t)(data[0] & 15u) * 4;
        put16(data + 2, length);
        put16(data + 10, 0);
        put16(data + 10, (uint16_t)~fold(sum(data, header, 0)));
        pseudo = sum(data + 12, 8, pseudo);
    }
    put16(data + transport + checksum_offset, fold(pseudo));
}

static bool transport_of(mp_super *super, uint8_t type) {
    if (type == VIRTIO_NET_HDR_GSO_UDP_L4) {
        super->headers = super->transport + UDP_HEADER;
        return super->checksum_offset == UDP_CHECKSUM_AT;
    }
    if (type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6)
        return false;
    size_t length = (size_t)(super->data[super->transport + 12] >> 4) * 4;
    super->headers = super->transport + length;
    return super->checksum_offset == TCP_CHECKSUM_AT && length >= TCP_MIN_HEADER;
}

bool mp_super_open(mp_super *super, const struct virtio_net_hdr *header, const uint8_t *data, size_t length) {
    *super = (mp_super){
        .data = data,
        .length = length,
        .transport = header->csum_start,
        .segment = header->gso_size,
        .checksum_offset = header->csum_offset,
    };
    bool v6 = length > 0 && is_ipv6(data);
    size_t ip_header = v6 ? IPV6_HEADER : length > 0 ? (size_t)(data[0] & 15u) * 4 : 0;
    if ((header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0 || super->segment == 0 || length > MP_SUPER_BYTES ||
        ip_header < IPV4_HEADER || super->transport < ip_header || super->transport + TCP_MIN_HEADER > length ||
        (!v6 && data[0] >> 4 != 4))
        return false;
    return transport_of(super, header->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN) && super->headers < length &&
           super->headers + super->segment <= LINK_PACKET_CAPACITY;
}

bool mp_super_next(mp_super *super, link_packet *packet) {
    size_t left = super->length - super->headers - super->taken;
    size_t payload = left < super->segment ? left : super->segment;
    bool tcp = super->checksum_offset == TCP_CHECKSUM_AT;
    uint8_t *data = packet->data;
    uint8_t *transport = data + super->transport;
    if (left == 0)
        return false;
    memcpy(data, super->data, super->headers);
    memcpy(data + super->headers, super->data + super->headers + super->taken, payload);
    packet->length = (uint32_t)(super->headers + payload);
    packet->checksum_start = (uint16_t)super->transport;
    packet->checksum_offset = super->checksum_offset;
    if (!is_ipv6(data))
        put16(data + 4, (size_t)get16(data + 4) + super->count);
    if (tcp) {
        put32(transport + 4, get32(transport + 4) + (uint32_t)super->taken);
        transport[TCP_FLAGS_AT] &= (uint8_t) ~(payload < left ? TCP_FIN_PSH : 0u);
        transport[TCP_FLAGS_AT] &= (uint8_t) ~(super->count > 0 ? TCP_CWR : 0u);
    } else {
        put16(transport + 4, UDP_HEADER + payload);
    }
    finish_headers(data, packet->length, super->transport, super->checksum_offset, tcp ? IPPROTO_TCP : IPPROTO_UDP);
    super->taken += payload;
    super->count++;
    return true;
}

/* Returns the bytes of the headers of a whole UDP packet without IP options whose checksum the kernel left to the
 * device (so that a wrong one is not corrected); 0 for other packets. */
static size_t mergeable_headers(const link_packet *packet) {
    const uint8_t *data = packet->data;
    size_t ip = packet->length >= IPV6_HEADER + UDP_HEADER && is_ipv6(data) ? IPV6_HEADER : IPV4_HEADER;
    if (packet->checksum_start != ip || packet->checksum_offset != UDP_CHECKSUM_AT ||
        packet->length <= ip + UDP_HEADER || get16(data + ip + 4) != packet->length - ip)
        return 0;
    if (ip == IPV6_HEADER)
        return data[6] == IPPROTO_UDP && get16(data + 4) == packet->length - IPV6_HEADER ? ip + UDP_HEADER : 0;
    bool whole = data[0] == 0x45 && (data[6] & (uint8_t) ~(0x80u | DONT_FRAGMENT)) == 0 && data[7] == 0;
    return whole && data[9] == IPPROTO_UDP && get16(data + 2) == packet->length ? ip + UDP_HEADER : 0;
}

/* Whether addresses, ports, class of service, hop limit and protocol are the same. */
static bool same_flow(const uint8_t *a, const uint8_t *b, size_t headers) {
    if (headers == IPV6_HEADER + UDP_HEADER)
        return memcmp(a, b, 4) == 0 && memcmp(a + 6, b + 6, 38) == 0;
    return memcmp(a, b, 2) == 0 && memcmp(a + 6, b + 6, 4) == 0 && memcmp(a + 12, b + 12, 12) == 0;
}

/* Whether the identification is that of the next segment when the receiving kernel splits the super-packet. RFC 6864:
 * it has no meaning in a packet that must not be fragmented. */
static bool id_continues(const mp_group *group, const uint8_t *data) {
    const uint8_t *first = group->packets[0]->data;
    return is_ipv6(data) || (data[6] & DONT_FRAGMENT) != 0 ||
           get16(data + 4) == (uint16_t)(get16(first + 4) + group->count);
}

static bool fits(const mp_group *group, const link_packet *packet) {
    const link_packet *first = group->packets[0];
    if (group->closed || group->headers == 0 || group->count == MP_GROUP_PACKETS || packet->length > first->length ||
        mergeable_headers(packet) != group->headers)
        return false;
    return group->payload + packet->length < MP_SUPER_BYTES - 1 &&
           same_flow(first->data, packet->data, group->headers) && id_continues(group, packet->data);
}

bool mp_group_add(mp_group *group, link_packet *packet, bool may_merge) {
    if (group->count == 0) {
        group->headers = may_merge ? mergeable_headers(packet) : 0;
        group->payload = packet->length - group->headers;
        group->closed = false;
    } else if (!fits(group, packet)) {
        return false;
    } else {
        group->payload += packet->length - group->headers;
        group->closed = packet->length < group->packets[0]->length;
    }
    group->packets[group->count++] = packet;
    return true;
}

/* Makes the first packet's headers those of a packet with this much payload. */
static void set_udp_length(mp_group *group, size_t payload) {
    uint8_t *data = group->packets[0]->data;
    size_t transport = group->headers - UDP_HEADER;
    put16(data + transport + 4, UDP_HEADER + payload);
    finish_headers(data, group->headers + payload, transport, UDP_CHECKSUM_AT, IPPROTO_UDP);
}

int mp_group_vectors(mp_group *group, struct virtio_net_hdr *header, struct iovec *vectors) {
    link_packet *first = group->packets[0];
    memset(header, 0, sizeof *header);
    vectors[0] = (struct iovec){header, sizeof *header};
    vectors[1] = (struct iovec){first->data, first->length};
    if (first->checksum_start != 0) {
        header->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        header->csum_start = first->checksum_start;
        header->csum_offset = first->checksum_offset;
    }
    if (group->count == 1)
        return 2;
    for (size_t i = 1; i < group->count; i++) {
        link_packet *packet = group->packets[i];
        vectors[1 + i] = (struct iovec){packet->data + group->headers, packet->length - group->headers};
    }
    header->gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    header->gso_size = (uint16_t)(first->length - group->headers);
    header->hdr_len = (uint16_t)group->headers;
    set_udp_length(group, group->payload);
    return (int)group->count + 1;
}

void mp_group_restore(mp_group *group) {
    if (group->count > 1)
        set_udp_length(group, group->packets[0]->length - group->headers);
}

void mp_checksum_complete(uint8_t *data, size_t length, uint16_t start, uint16_t offset) {
    if (start == 0 || (size_t)start + offset + 2 > length)
        return;
    uint16_t value = (uint16_t)~fold(sum(data + start, length - start, 0));
    bool udp = offset == UDP_CHECKSUM_AT;
    put16(data + start + offset, udp && value == 0 ? 0xffffu : value);
}
