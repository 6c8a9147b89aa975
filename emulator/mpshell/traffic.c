#include "emulator/mpshell/traffic.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/mpshell/clock.h"
#include "emulator/mpshell/offload.h"
#include "emulator/mpshell/stream.h"

static uint64_t since_t0(const mp_shell *shell) {
    return clock_us() - shell->t0_us;
}

/* One read goes into a packet from the pool; what is longer runs over into the second part of space, and the packet's
 * share is put before it. There is one reading thread. */
static uint8_t space[LINK_PACKET_CAPACITY + MP_SUPER_BYTES];

static void enqueue(const mp_shell *shell, mp_direction *direction, link_packet *packet, uint64_t now) {
    if (direction->captured_in)
        mp_stream_capture(direction->captured_in, packet, shell->t0_epoch_ns + now * 1000);
    link_enqueue(direction->link, packet, now);
}

static void enqueue_segments(mp_shell *shell, mp_direction *direction, link_packet *packet,
                             const struct virtio_net_hdr *header, size_t length, uint64_t now) {
    mp_super super;
    memcpy(space, packet->data, LINK_PACKET_CAPACITY);
    bool good = mp_super_open(&super, header, space, length);
    while (good && packet && mp_super_next(&super, packet)) {
        enqueue(shell, direction, packet, now);
        packet = link_pool_get(shell->pool);
    }
    if (!good || !packet)
        link_refuse(direction->link, (uint32_t)length);
    link_pool_put(shell->pool, packet);
}

mp_read_result mp_traffic_read(mp_shell *shell, mp_direction *direction, uint64_t *now) {
    link_packet *packet = link_pool_get(shell->pool);
    struct virtio_net_hdr header;
    struct iovec vectors[3] = {
        {&header, sizeof header},
        {packet ? packet->data : space, LINK_PACKET_CAPACITY},
        {space + LINK_PACKET_CAPACITY, MP_SUPER_BYTES},
    };
    ssize_t n = readv(direction->from_fd, vectors, 3);
    *now = since_t0(shell);
    if (n <= (ssize_t)sizeof header) {
        link_pool_put(shell->pool, packet);
        return n >= 0 || (errno != EAGAIN && errno != EINTR) ? MP_READ_GONE : MP_READ_EMPTY;
    }
    size_t length = (size_t)n - sizeof header;
    if (!packet) {
        link_refuse(direction->link, (uint32_t)length);
    } else if (header.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        enqueue_segments(shell, direction, packet, &header, length, *now);
    } else {
        packet->length = (uint32_t)(length < LINK_PACKET_CAPACITY ? length : LINK_PACKET_CAPACITY);
        if ((header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) {
            packet->checksum_start = header.csum_start;
            packet->checksum_offset = header.csum_offset;
        }
        enqueue(shell, direction, packet, *now);
    }
    return MP_READ_ONE;
}

/* One write; false if the device refused it. */
static bool write_group(const mp_direction *direction, mp_group *group) {
    struct virtio_net_hdr header;
    struct iovec vectors[1 + MP_GROUP_PACKETS];
    int count = mp_group_vectors(group, &header, vectors);
    ssize_t n = writev(direction->to_fd, vectors, count);
    int saved = errno;
    mp_group_restore(group);
    errno = saved;
    return n > 0;
}

/* For kernels without UDP super-packets (before 6.2). */
static void write_one_by_one(mp_direction *direction, mp_group *group) {
    mp_group one;
    direction->may_merge = false;
    for (size_t i = 0; i < group->count; i++) {
        one.count = 0;
        mp_group_add(&one, group->packets[i], false);
        direction->write_errors += !write_group(direction, &one);
    }
}

static void send_group(mp_shell *shell, mp_direction *direction, mp_group *group) {
    if (group->count == 0)
        return;
    if (!write_group(direction, group)) {
        if (group->count > 1 && errno == EINVAL)
            write_one_by_one(direction, group);
        else
            direction->write_errors += group->count;
    }
    uint64_t now = since_t0(shell);
    for (size_t i = 0; i < group->count; i++) {
        if (direction->captured_out)
            mp_stream_capture(direction->captured_out, group->packets[i], shell->t0_epoch_ns + now * 1000);
        if (direction->departures)
            mp_stream_departure(direction->departures, group->packets[i], now);
        uint64_t due = group->packets[i]->due_us;
        mp_late_record(&shell->late, due, now > due ? now - due : 0);
        link_departed(direction->link, group->packets[i], now);
    }
    group->count = 0;
}

void mp_traffic_send_due(mp_shell *shell, mp_direction *direction, uint64_t now) {
    if (link_next_deadline(direction->link) > now)
        return;
    mp_group group;
    group.count = 0;
    link_advance(direction->link, now);
    for (link_packet *packet = link_pull(direction->link); packet; packet = link_pull(direction->link)) {
        if (!mp_group_add(&group, packet, direction->may_merge)) {
            send_group(shell, direction, &group);
            mp_group_add(&group, packet, direction->may_merge);
        }
    }
    send_group(shell, direction, &group);
}
