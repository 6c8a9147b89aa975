#include "emulator/mpshell/traffic.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/mpshell/offload.h"
#include "emulator/mpshell/stream.h"

static uint64_t since_t0(const mp_shell *shell) {
    return clock_us() - shell->t0_us;
}

/* A read fills a packet from the pool. The rest of a super-packet goes into the second part of `space`, and the
 * packet's bytes are then copied before it. Only one thread reads. */
static uint8_t space[LINK_PACKET_CAPACITY + MP_SUPER_BYTES];

static void enqueue(const mp_shell *shell, mp_direction *direction, link_packet *packet, uint64_t now) {
    if (direction->captured_in)
        mp_stream_capture(direction->captured_in, packet, shell->t0_epoch_ns + now * 1000);
    link_route_begin(packet, direction->number);
    link_enqueue(direction->entry->link, packet, now);
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
        link_refuse(direction->entry->link, (uint32_t)length);
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
        link_refuse(direction->entry->link, (uint32_t)length);
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

/* Makes one write. False if the device rejected it. */
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

/* Records that the packet leaves the link at `now`. */
static void note_departure(mp_shell *shell, const mp_direction *from, const link_packet *packet, uint64_t now) {
    if (from->departures)
        mp_stream_departure(from->departures, packet, now);
    mp_late_record(&shell->late, packet->due_us, now > packet->due_us ? now - packet->due_us : 0);
}

/* Sends packets of the link of `from` to the device of `to`, their path's direction. */
static void send_group(mp_shell *shell, mp_direction *from, mp_direction *to, mp_group *group) {
    if (group->count == 0)
        return;
    if (!write_group(to, group)) {
        if (group->count > 1 && errno == EINVAL)
            write_one_by_one(to, group);
        else
            to->write_errors += group->count;
    }
    uint64_t now = since_t0(shell);
    for (size_t i = 0; i < group->count; i++) {
        if (to->captured_out)
            mp_stream_capture(to->captured_out, group->packets[i], shell->t0_epoch_ns + now * 1000);
        note_departure(shell, from, group->packets[i], now);
        link_departed(from->link, group->packets[i], now);
    }
    group->count = 0;
}

void mp_traffic_send_due(mp_shell *shell, mp_direction *direction, uint64_t now) {
    if (link_next_deadline(direction->link) > now)
        return;
    mp_group group;
    mp_direction *to = direction;
    group.count = 0;
    link_advance(direction->link, now);
    for (link_packet *packet = link_pull(direction->link); packet; packet = link_pull(direction->link)) {
        mp_direction *of_packet = mp_direction_at(shell, packet->route);
        int next = link_route_next(&of_packet->route, packet);
        if (next >= 0) {
            note_departure(shell, direction, packet, now);
            link_route_forward(direction->link, mp_direction_at(shell, (size_t)next)->link, packet, now);
            continue;
        }
        if (of_packet != to || !mp_group_add(&group, packet, to->may_merge)) {
            send_group(shell, direction, to, &group);
            to = of_packet;
            mp_group_add(&group, packet, to->may_merge);
        }
    }
    send_group(shell, direction, to, &group);
}
