/* Super-packets of mpshell's devices: any header with any packet. Properties: segments are within the packet and have
 * its payload; packets that are written together keep their payload, and are unchanged afterwards. */
#include "tests/fuzz/input.h"
#include "emulator/mpshell/offload.h"

#define SEGMENTS_MOST 100

static link_packet *segment[SEGMENTS_MOST];
static uint8_t before[SEGMENTS_MOST][LINK_PACKET_CAPACITY];

static size_t take_apart(const struct virtio_net_hdr *header, const uint8_t *data, size_t len) {
    mp_super super;
    size_t count = 0, payload = 0;
    if (!mp_super_open(&super, header, data, len))
        return 0;
    FUZZ_CHECK(super.headers <= len && super.transport < super.headers && super.segment > 0);
    while (count < SEGMENTS_MOST && mp_super_next(&super, segment[count])) {
        const link_packet *p = segment[count++];
        FUZZ_CHECK(p->length <= LINK_PACKET_CAPACITY && p->length > super.headers);
        FUZZ_CHECK(memcmp(p->data + super.headers, data + super.headers + payload, p->length - super.headers) == 0);
        payload += p->length - super.headers;
        fuzz_note(p->data, p->length);
    }
    FUZZ_CHECK(count == SEGMENTS_MOST || payload == len - super.headers);
    return count;
}

static void put_together(size_t count, bool may_merge, unsigned skip) {
    mp_group group = {0};
    for (size_t i = 0; i < count; i++)
        memcpy(before[i], segment[i]->data, segment[i]->length);
    for (size_t i = 0; i < count; i++)
        if ((skip < 2 || i % skip != skip - 1) && !mp_group_add(&group, segment[i], may_merge))
            break;
    struct virtio_net_hdr header;
    struct iovec vectors[1 + MP_GROUP_PACKETS];
    FUZZ_CHECK(group.count >= 1 && group.count <= MP_GROUP_PACKETS);
    int n = mp_group_vectors(&group, &header, vectors);
    size_t total = 0;
    for (int i = 1; i < n; i++) {
        total += vectors[i].iov_len;
        fuzz_note(vectors[i].iov_base, vectors[i].iov_len);
    }
    FUZZ_CHECK(total == group.headers + group.payload && total <= MP_SUPER_BYTES);
    mp_group_restore(&group);
    for (size_t i = 1; i < count; i++)
        FUZZ_CHECK(memcmp(before[i], segment[i]->data, segment[i]->length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    struct virtio_net_hdr header = {0};
    for (size_t i = 0; !segment[i % SEGMENTS_MOST]; i++)
        segment[i] = calloc(1, sizeof *segment[i]);
    uint8_t flags = fuzz_u8(&in), skip = fuzz_u8(&in);
    header.flags = fuzz_u8(&in);
    header.gso_type = fuzz_u8(&in);
    header.hdr_len = fuzz_u16(&in);
    header.gso_size = fuzz_u16(&in);
    header.csum_start = fuzz_u16(&in);
    header.csum_offset = fuzz_u16(&in);
    size_t left = fuzz_left(&in), repeat = flags & 2 && left > 0 ? 1 + fuzz_u8(&in) % 16u : 1;
    left = fuzz_left(&in);
    uint8_t *packet = malloc(left * repeat + 1);
    FUZZ_CHECK(packet != NULL);
    for (size_t i = 0; i < repeat && left > 0; i++)
        memcpy(packet + i * left, in.p, left);
    uint8_t *exact = fuzz_copy(packet, left * repeat);
    size_t count = take_apart(&header, exact, left * repeat);
    if (count > 0)
        put_together(count, flags & 1, skip % 8);
    size_t whole = left * repeat < LINK_PACKET_CAPACITY ? left * repeat : LINK_PACKET_CAPACITY;
    if (count == 0 && whole >= 20) { /* unsegmented, several of the same kind */
        for (size_t i = 0; i < 3; i++) {
            *segment[i] = (link_packet){.length = (uint32_t)whole};
            memcpy(segment[i]->data, packet, whole);
        }
        put_together(3, flags & 1, 0);
    }
    mp_checksum_complete(exact, left * repeat, header.csum_start, header.csum_offset);
    fuzz_note(exact, left * repeat);
    free(exact);
    free(packet);
    return 0;
}
