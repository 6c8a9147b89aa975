#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/rng.h"
#include "emulator/mpshell/offload.h"

static uint8_t super_data[MP_SUPER_BYTES];

/* Makes a super-packet of the protocol with payload bytes 0, 1, 2, ... Returns its length. */
static size_t make_super(bool v6, uint8_t protocol, size_t payload, uint16_t segment, struct virtio_net_hdr *header) {
    size_t ip = v6 ? 40 : 20;
    size_t transport = protocol == IPPROTO_TCP ? 32 : 8;
    uint8_t *d = super_data;
    memset(d, 0, ip + transport);
    for (size_t i = 0; i < payload; i++)
        d[ip + transport + i] = (uint8_t)(i * 31 >> 3);
    for (size_t i = v6 ? 8 : 12; i < ip; i++)
        d[i] = (uint8_t)(i * 7); /* addresses */
    if (v6) {
        d[0] = 0x60;
        d[6] = protocol;
        d[7] = 64;
    } else {
        memcpy(d, (uint8_t[]){0x45, 0, 0, 0, 0x10, 0xff, 0x40, 0, 64, protocol, 0, 0}, 12);
    }
    memcpy(d + ip, (uint8_t[]){0x30, 0x39, 0x00, 0x50}, 4); /* ports */
    if (protocol == IPPROTO_TCP) {
        memcpy(d + ip + 4, (uint8_t[]){0xff, 0xff, 0xff, 0x00}, 4); /* a sequence number about to wrap */
        d[ip + 12] = 0x80;                                          /* 32 bytes of header */
        d[ip + 13] = 0x80 | 0x10 | 0x08 | 0x01;                     /* CWR ACK PSH FIN */
    }
    *header = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = protocol == IPPROTO_UDP ? VIRTIO_NET_HDR_GSO_UDP_L4
                    : v6                    ? VIRTIO_NET_HDR_GSO_TCPV6
                                            : VIRTIO_NET_HDR_GSO_TCPV4,
        .gso_size = segment,
        .csum_start = (uint16_t)ip,
        .csum_offset = protocol == IPPROTO_TCP ? 16 : 6,
    };
    return ip + transport + payload;
}

static unsigned ones_sum(const uint8_t *at, size_t length, unsigned total) {
    for (size_t i = 0; i < length; i++) {
        total += i % 2 == 0 ? (unsigned)at[i] << 8 : at[i];
        total = (total & 0xffffu) + (total >> 16);
    }
    return total;
}

/* Verifies the packet's checksums as a receiver does, by RFC 791, 768, 9293 and 8200. */
static void assert_checksums_verify(const link_packet *packet) {
    uint8_t copy[LINK_PACKET_CAPACITY];
    memcpy(copy, packet->data, packet->length);
    mp_checksum_complete(copy, packet->length, packet->checksum_start, packet->checksum_offset);
    bool v6 = copy[0] >> 4 == 6;
    size_t ip = v6 ? 40 : 20;
    uint8_t protocol = v6 ? copy[6] : copy[9];
    if (!v6) {
        assert_int_equal(ones_sum(copy, 20, 0), 0xffff);
        assert_int_equal((copy[2] << 8) + copy[3], packet->length);
    } else {
        assert_int_equal((copy[4] << 8) + copy[5], packet->length - 40);
    }
    unsigned total = ones_sum(copy + (v6 ? 8 : 12), v6 ? 32 : 8, (unsigned)(packet->length - ip) + protocol);
    assert_int_equal(ones_sum(copy + ip, packet->length - ip, total), 0xffff);
}

TEST(a_udp_super_packet_becomes_its_datagrams) {
    for (int v6 = 0; v6 < 2; v6++) {
        struct virtio_net_hdr header;
        mp_super super;
        static link_packet packet;
        size_t headers = v6 ? 48 : 28;
        size_t length = make_super(v6 == 1, IPPROTO_UDP, 2500, 1200, &header);
        assert_true(mp_super_open(&super, &header, super_data, length));
        static const size_t payloads[] = {1200, 1200, 100};
        size_t seen = 0;
        for (size_t i = 0; i < 3; i++) {
            assert_true(mp_super_next(&super, &packet));
            assert_int_equal(packet.length, headers + payloads[i]);
            assert_int_equal((packet.data[headers - 4] << 8) + packet.data[headers - 3], 8 + payloads[i]);
            assert_memory_equal(packet.data + headers, super_data + headers + seen, payloads[i]);
            if (!v6)
                assert_int_equal((packet.data[4] << 8) + packet.data[5], 0x10ff + i);
            assert_checksums_verify(&packet);
            seen += payloads[i];
        }
        assert_false(mp_super_next(&super, &packet));
    }
}

TEST(a_tcp_super_packet_keeps_its_numbers_and_flags) {
    for (int v6 = 0; v6 < 2; v6++) {
        struct virtio_net_hdr header;
        mp_super super;
        static link_packet packet;
        size_t ip = v6 ? 40 : 20;
        size_t length = make_super(v6 == 1, IPPROTO_TCP, 3000, 1448, &header);
        header.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
        assert_true(mp_super_open(&super, &header, super_data, length));
        static const uint32_t numbers[] = {0xffffff00u, 0xffffff00u + 1448u, 0xffffff00u + 2896u};
        static const uint8_t flags[] = {0x80 | 0x10, 0x10, 0x10 | 0x08 | 0x01}; /* CWR first, PSH and FIN last */
        for (size_t i = 0; i < 3; i++) {
            assert_true(mp_super_next(&super, &packet));
            const uint8_t *tcp = packet.data + ip;
            uint32_t number = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 | tcp[7];
            assert_int_equal(number, numbers[i]);
            assert_int_equal(tcp[13], flags[i]);
            assert_checksums_verify(&packet);
        }
        assert_false(mp_super_next(&super, &packet));
    }
}

/* Makes the segments of a super-packet of count full datagrams and a shorter one. */
static size_t make_packets(bool v6, size_t count, link_packet *packets) {
    struct virtio_net_hdr header;
    mp_super super;
    size_t length = make_super(v6, IPPROTO_UDP, count * 1000 + 10, 1000, &header);
    size_t n = 0;
    assert_true(mp_super_open(&super, &header, super_data, length));
    while (mp_super_next(&super, &packets[n]))
        n++;
    return n;
}

TEST(what_is_merged_comes_apart_the_same) {
    static link_packet packets[8];
    static link_packet again;
    static uint8_t written[MP_SUPER_BYTES];
    for (int v6 = 0; v6 < 2; v6++) {
        mp_group group = {.count = 0};
        struct virtio_net_hdr header;
        struct iovec vectors[1 + MP_GROUP_PACKETS];
        mp_super super;
        size_t n = make_packets(v6 == 1, 4, packets);
        uint8_t first[64];
        size_t length = 0;
        memcpy(first, packets[0].data, sizeof first);
        for (size_t i = 0; i < n; i++)
            assert_true(mp_group_add(&group, &packets[i], true));
        assert_false(mp_group_add(&group, &packets[0], true)); /* the short one was the last */
        int count = mp_group_vectors(&group, &header, vectors);
        assert_int_equal(count, n + 1);
        for (int i = 1; i < count; i++) {
            memcpy(written + length, vectors[i].iov_base, vectors[i].iov_len);
            length += vectors[i].iov_len;
        }
        assert_true(mp_super_open(&super, &header, written, length));
        mp_group_restore(&group);
        assert_memory_equal(packets[0].data, first, sizeof first);
        for (size_t i = 0; i < n; i++) {
            assert_true(mp_super_next(&super, &again));
            assert_int_equal(again.length, packets[i].length);
            assert_memory_equal(again.data, packets[i].data, again.length);
        }
        assert_false(mp_super_next(&super, &again));
    }
}

TEST(only_one_flows_whole_unverified_datagrams_are_merged) {
    static link_packet packets[8];
    for (int change = 0; change < 9; change++) {
        mp_group group = {.count = 0};
        make_packets(false, 4, packets);
        uint8_t *second = packets[1].data;
        switch (change) {
        case 0:
            second[21] ^= 1; /* source port */
            break;
        case 1:
            second[15] ^= 1; /* source address */
            break;
        case 2:
            second[1] ^= 3; /* ECN */
            break;
        case 3:
            second[8] ^= 1; /* TTL */
            break;
        case 4:
            second[6] = 0; /* may be fragmented */
            break;
        case 5:
            second[6] = 0x60; /* is a fragment */
            break;
        case 6:
            second[25] ^= 1; /* UDP length */
            break;
        case 7:
            packets[1].checksum_start = 0; /* it has a checksum, which may be wrong */
            break;
        default:
            second[9] = IPPROTO_TCP;
        }
        assert_true(mp_group_add(&group, &packets[0], true));
        assert_false(mp_group_add(&group, &packets[1], true));
        assert_true(mp_group_add(&group, &packets[2], true));
    }
    mp_group group = {.count = 0};
    make_packets(false, 4, packets);
    assert_true(mp_group_add(&group, &packets[0], false));
    assert_false(mp_group_add(&group, &packets[1], false));
    group.count = 0;
    for (size_t i = 0; i < 3; i++)
        packets[i].data[6] = 0; /* may be fragmented: then the identification must increase by 1 */
    assert_true(mp_group_add(&group, &packets[0], true));
    assert_true(mp_group_add(&group, &packets[1], true));
    packets[2].data[5] ^= 1;
    assert_false(mp_group_add(&group, &packets[2], true));
}

TEST(a_single_packet_is_written_as_it_came) {
    static link_packet packets[8];
    mp_group group = {.count = 0};
    struct virtio_net_hdr header;
    struct iovec vectors[1 + MP_GROUP_PACKETS];
    make_packets(false, 1, packets);
    mp_group_add(&group, &packets[0], true);
    assert_int_equal(mp_group_vectors(&group, &header, vectors), 2);
    assert_int_equal(header.gso_type, VIRTIO_NET_HDR_GSO_NONE);
    assert_int_equal(header.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
    assert_int_equal(header.csum_start, 20);
    assert_int_equal(vectors[1].iov_len, packets[0].length);
    packets[0].checksum_start = 0;
    mp_group_vectors(&group, &header, vectors);
    assert_int_equal(header.flags, 0);
}

/* For any headers from a raw socket, no segment is longer than a packet, and nothing is read beyond the end. */
TEST(headers_that_do_not_fit_do_no_harm) {
    link_rng rng = {.state = 7};
    link_packet *packet = malloc(sizeof(*packet));
    for (int round = 0; round < 20000; round++) {
        struct virtio_net_hdr header;
        mp_super super;
        size_t length = make_super(round % 2 == 0, round % 3 == 0 ? IPPROTO_TCP : IPPROTO_UDP, 200, 90, &header);
        length = (size_t)(link_rng_uniform(&rng) * (double)length);
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, super_data, length);
        for (int i = 0; i < 3 && length > 0; i++) {
            exact[(size_t)(link_rng_uniform(&rng) * (double)(length < 60 ? length : 60))] ^=
                (uint8_t)(1u << (unsigned)(link_rng_uniform(&rng) * 8));
        }
        if (round % 5 == 0) {
            header.csum_start = (uint16_t)(link_rng_uniform(&rng) * 300);
            header.gso_size = (uint16_t)(link_rng_uniform(&rng) * 4000);
        }
        uint8_t *shrunk = realloc(exact, length > 0 ? length : 1);
        if (mp_super_open(&super, &header, shrunk, length)) {
            while (mp_super_next(&super, packet)) {
                assert_true(packet->length <= LINK_PACKET_CAPACITY);
                mp_group group = {.count = 0};
                mp_group_add(&group, packet, true);
                mp_checksum_complete(packet->data, packet->length, packet->checksum_start, packet->checksum_offset);
            }
        }
        free(shrunk);
    }
    free(packet);
}

TEST_MAIN(NULL, NULL)
