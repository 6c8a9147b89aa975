#include "emulator/saturatr/peer.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_US       1000u
#define RETRY_ERROR_US 20000u /* for example: the device is down */

typedef struct {
    sat_peer *peer;
    sat_socket *socket;
} peer_reception;

bool sat_peer_init(sat_peer *peer, size_t path_count, size_t packet_bytes) {
    memset(peer, 0, sizeof *peer);
    peer->path_count = path_count;
    peer->packet_bytes = packet_bytes;
    peer->via_path = SAT_NO_PATH;
    peer->segments = malloc((size_t)SAT_GSO_MOST * SAT_PACKET_MOST);
    if (!peer->segments)
        return false;
    uint64_t state = 1; /* data that no device can compress */
    for (size_t i = 0; i < (size_t)SAT_GSO_MOST * SAT_PACKET_MOST; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        peer->segments[i] = (uint8_t)(state >> 56);
    }
    return true;
}

void sat_peer_free(sat_peer *peer) {
    for (size_t k = 0; k < SAT_MAX_PATHS; k++)
        sat_ledger_free(&peer->flows[k].ledger);
    free(peer->segments);
    peer->segments = NULL;
}

uint8_t sat_peer_ack_channel(const sat_peer *peer, size_t path) {
    return (uint8_t)(SAT_MAX_PATHS + (peer->ack_via ? 0 : path));
}

void sat_peer_start(sat_peer *peer, bool sends, bool receives, uint64_t limit_bytes, uint64_t now) {
    for (size_t k = 0; k < peer->path_count; k++) {
        sat_flow *flow = &peer->flows[k];
        flow->sends = sends;
        flow->receives = receives;
        sat_window_init(&flow->window, now);
        sat_train_init(&flow->train, peer->train_packets, peer->every_us, now);
        flow->window.smooth = !peer->ack_via && sends && receives;
        sat_ledger_free(&flow->ledger);
        sat_ledger_init(&flow->ledger, limit_bytes);
    }
    peer->sending = true;
}

uint64_t sat_peer_sent(const sat_peer *peer, size_t path) {
    const sat_flow *flow = &peer->flows[path];
    return peer->train_packets > 0 ? flow->train.next_seq : flow->window.next_seq;
}

/* Returns the path whose link a packet on this channel has used, or SAT_NO_PATH. */
static size_t path_of(const sat_peer *peer, uint8_t channel) {
    size_t path = channel < SAT_MAX_PATHS ? channel : peer->ack_via ? peer->via_path : channel - SAT_MAX_PATHS;
    return path < peer->path_count ? path : SAT_NO_PATH;
}

static void record(sat_peer *peer, const sat_packet *packet, const sat_datagram *datagram) {
    size_t path = path_of(peer, packet->channel);
    if (path == SAT_NO_PATH || !peer->flows[path].receives)
        return;
    sat_arrival arrival = {
        .received_us = datagram->received_us,
        .sent_us = packet->sent_us,
        .seq = packet->seq,
        .ip_bytes = datagram->ip_bytes,
        .kind = packet->type == SAT_DATA  ? SAT_KIND_DATA
                : packet->type == SAT_ACK ? SAT_KIND_ACK
                                          : SAT_KIND_PROBE,
    };
    sat_ledger_add(&peer->flows[path].ledger, &arrival);
}

static bool belongs(const sat_peer *peer, const sat_packet *packet) {
    return packet->tag == peer->tag_in && packet->path < peer->path_count &&
           (packet->type != SAT_DATA || packet->channel == packet->path);
}

static void on_datagram(void *user, const sat_datagram *datagram) {
    const peer_reception *reception = user;
    sat_peer *peer = reception->peer;
    sat_packet packet;
    if (!sat_wire_read(&packet, datagram->data, datagram->length, datagram->datagram_bytes) ||
        !belongs(peer, &packet)) {
        peer->strays++;
        return;
    }
    if (packet.type == SAT_DATA && peer->on_data)
        peer->on_data(peer->user);
    record(peer, &packet, datagram);
    if (packet.type == SAT_ACK) {
        sat_flow *flow = &peer->flows[packet.path];
        if (flow->sends && peer->train_packets == 0) {
            sat_window_on_ack(&flow->window, packet.seq, packet.received_packets, packet.echo_us, packet.received_us,
                              datagram->received_us);
        }
    } else if (packet.type != SAT_DATA && peer->on_control) {
        peer->on_control(peer->user, &packet, datagram, reception->socket);
    }
}

void sat_peer_receive(sat_peer *peer, sat_socket *socket) {
    peer_reception reception = {.peer = peer, .socket = socket};
    sat_socket_receive(socket, on_datagram, &reception);
}

void sat_peer_send_control(sat_peer *peer, const sat_packet *packet) {
    uint8_t data[SAT_CONTROL_BYTES];
    const sat_route *route = &peer->routes[packet->channel];
    if (route->socket && route->remote.family != 0) {
        sat_wire_write(packet, data);
        sat_socket_send(route->socket, &route->remote, &route->local, data, sizeof data, 1);
    }
}

static void send_ack(sat_peer *peer, size_t k, uint64_t now) {
    sat_ledger *ledger = &peer->flows[k].ledger;
    const sat_packet packet = {
        .type = SAT_ACK,
        .channel = sat_peer_ack_channel(peer, k),
        .path = (uint8_t)k,
        .tag = peer->tag_out,
        .seq = ledger->highest,
        .sent_us = now,
        .echo_us = ledger->echo_us,
        .received_us = ledger->echo_received_us,
        .received_packets = ledger->received,
    };
    sat_ledger_acked(ledger, now);
    if (peer->routes[packet.channel].open)
        sat_peer_send_control(peer, &packet);
}

static void after_failure(sat_peer *peer, size_t k, uint64_t now) {
    sat_flow *flow = &peer->flows[k];
    bool full = errno == EAGAIN || errno == ENOBUFS;
    if (errno == EMSGSIZE) {
        peer->fatal = errno;
        peer->fatal_path = k;
    }
    flow->retry_us = now + (full ? RETRY_US : RETRY_ERROR_US);
}

/* Returns the number of packets that may be sent now. */
static uint64_t allowance(sat_peer *peer, sat_flow *flow, uint64_t now) {
    if (now < flow->retry_us)
        return 0;
    return peer->train_packets > 0 ? sat_train_allowance(&flow->train, now) : sat_window_allowance(&flow->window, now);
}

static void on_sent(sat_peer *peer, sat_flow *flow, size_t sent, uint64_t now) {
    if (peer->train_packets > 0) {
        sat_train_on_sent(&flow->train, (uint32_t)sent);
        return;
    }
    sat_window_on_sent(&flow->window, sent, now);
    uint64_t in_flight = sat_window_in_flight(&flow->window);
    flow->most_in_flight = in_flight > flow->most_in_flight ? in_flight : flow->most_in_flight;
}

/* Sends one burst. False: no more may be sent now. */
static bool send_burst(sat_peer *peer, size_t k, uint64_t now) {
    sat_flow *flow = &peer->flows[k];
    const sat_route *route = &peer->routes[k];
    uint64_t allowed = allowance(peer, flow, now);
    size_t count = allowed < SAT_GSO_MOST ? (size_t)allowed : SAT_GSO_MOST;
    if (count == 0)
        return false;
    uint64_t first = sat_peer_sent(peer, k);
    size_t ip_bytes = peer->sizes.count > 0 ? sat_sizes_of(&peer->sizes, first) : peer->packet_bytes;
    size_t segment = ip_bytes - sat_header_bytes(&route->remote);
    for (size_t i = 0; i < count; i++) {
        const sat_packet packet = {.type = SAT_DATA,
                                   .channel = (uint8_t)k,
                                   .path = (uint8_t)k,
                                   .tag = peer->tag_out,
                                   .seq = first + i,
                                   .sent_us = now};
        sat_wire_write(&packet, peer->segments + i * segment);
    }
    size_t sent = sat_socket_send(route->socket, &route->remote, &route->local, peer->segments, segment, count);
    if (sent < count)
        after_failure(peer, k, now);
    if (sent > 0)
        on_sent(peer, flow, sent, now);
    return sent == count;
}

static uint64_t serve_flow(sat_peer *peer, size_t k) {
    sat_flow *flow = &peer->flows[k];
    uint64_t now = clock_us();
    uint64_t next = SAT_NEVER;
    if (flow->receives && peer->train_packets == 0) {
        if (sat_ledger_ack_due(&flow->ledger) <= now)
            send_ack(peer, k, now);
        next = sat_ledger_ack_due(&flow->ledger);
    }
    if (flow->sends && peer->sending && peer->routes[k].open) {
        for (int bursts = 0; bursts < 4 && send_burst(peer, k, now); bursts++)
            now = clock_us();
        uint64_t wake = peer->train_packets > 0 ? sat_train_next(&flow->train) : sat_window_next(&flow->window, now);
        wake = wake < flow->retry_us ? flow->retry_us : wake;
        next = wake < next ? wake : next;
    }
    return next;
}

uint64_t sat_peer_send(sat_peer *peer) {
    uint64_t next = SAT_NEVER;
    for (size_t k = 0; k < peer->path_count; k++) {
        uint64_t wake = serve_flow(peer, k);
        next = wake < next ? wake : next;
    }
    return next;
}
