#include "emulator/saturatr/server_session.h"
#include "base/clock.h"
#include "base/error.h"

#include <string.h>

#define SETUP_US    30000000u  /* time from the client's request to its go */
#define HANDOVER_US 120000000u /* time without progress */
#define FRAME_BYTES 4u
#define GRACE_US    10000000u

/* Answers a HELLO with a cookie. The next HELLO with the right cookie opens the channel. */
static void on_hello(void *user, const sat_packet *packet, const sat_datagram *datagram, sat_socket *socket) {
    sat_session *session = user;
    sat_peer *peer = &session->peer;
    bool data = packet->channel < SAT_MAX_PATHS;
    size_t path = data || peer->ack_via ? packet->channel % SAT_MAX_PATHS : packet->channel - SAT_MAX_PATHS;
    if (packet->type != SAT_HELLO || socket != (data ? session->data_socket : session->ack_socket) ||
        path >= peer->path_count || (!data && packet->channel != sat_peer_ack_channel(peer, path)))
        return;
    sat_packet answer = {.type = SAT_WELCOME,
                         .channel = packet->channel,
                         .path = packet->path,
                         .tag = peer->tag_out,
                         .seq = packet->seq,
                         .echo_us = packet->sent_us,
                         .received_us = datagram->received_us};
    if (!sat_auth_cookie(session->cookie_key, packet->channel, &datagram->from, answer.cookie))
        return;
    if (sat_auth_same(packet->cookie, answer.cookie, SAT_COOKIE_BYTES)) {
        peer->routes[packet->channel] =
            (sat_route){.socket = socket, .remote = datagram->from, .local = datagram->to, .open = true};
        answer.flags = SAT_FLAG_VALID;
    }
    uint8_t data_out[SAT_CONTROL_BYTES];
    answer.sent_us = clock_us();
    sat_wire_write(&answer, data_out);
    sat_socket_send(socket, &datagram->from, &datagram->to, data_out, sizeof data_out, 1);
}

static void start(sat_session *session) {
    uint64_t now = clock_us();
    sat_peer_start(&session->peer, session->down, session->up, session->memory_bytes / session->peer.path_count, now);
    session->stage = SAT_RUNNING;
    session->deadline_us = now + session->length_us;
}

/* Starts the session if data come before the go, which may use a slower interface. If the data were ignored, the client
 * would wait for its heartbeat. */
static void on_data(void *user) {
    sat_session *session = user;
    if (session->stage == SAT_SETUP && session->up) {
        start(session);
        session->go_expected = true;
    }
}

static bool in_range(const json_t *request, const char *key, json_int_t least, json_int_t most, json_int_t *value) {
    const json_t *member = json_object_get(request, key);
    *value = json_integer_value(member);
    return json_is_integer(member) && *value >= least && *value <= most;
}

/* Reads the sizes of single packets. They are sent one at a time: a train is one packet. */
static bool read_sizes(const json_t *request, json_int_t train, json_int_t packet_bytes, sat_sizes *sizes) {
    const json_t *given = json_object_get(request, "sizes");
    *sizes = (sat_sizes){.count = 0};
    if (!json_is_array(given) || json_array_size(given) > SAT_SIZES_MOST)
        return false;
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *size = json_array_get(given, i);
        const json_int_t bytes = json_integer_value(size);
        if (!json_is_integer(size) || bytes < SAT_SIZE_LEAST || bytes > SAT_SIZE_MOST)
            return false;
        sizes->bytes[sizes->count++] = (uint32_t)bytes;
    }
    return sizes->count == 0 || (train == 1 && sat_sizes_are_allowed(sizes, (uint64_t)packet_bytes));
}

static bool check(sat_session *session, const sat_options *options, const json_t *request, char *error) {
    json_int_t paths;
    json_int_t packet_bytes;
    json_int_t via_path;
    json_int_t train;
    json_int_t every_us;
    sat_sizes sizes;
    double length_s = json_number_value(json_object_get(request, "sending_s"));
    if (!in_range(request, "paths", 1, SAT_MAX_PATHS, &paths) ||
        !in_range(request, "packet_bytes", SAT_PACKET_LEAST, SAT_PACKET_MOST, &packet_bytes) ||
        !in_range(request, "via_path", -1, paths - 1, &via_path) ||
        !in_range(request, "train", 0, SAT_TRAIN_MOST, &train) ||
        !in_range(request, "every_us", 0, SAT_EVERY_MOST_US, &every_us) ||
        (train > 0 && !sat_train_is_allowed((uint64_t)train, (uint64_t)every_us)) ||
        !read_sizes(request, train, packet_bytes, &sizes) || !(length_s > 0.0))
        return error_set(error, SAT_ERROR_SIZE, "the client's request is malformed; use the same version at both ends");
    if (length_s > (double)options->max_duration_us / 1e6)
        return error_set(
            error, SAT_ERROR_SIZE,
            "%.1f s of sending is more than this server allows (%.1f s); shorten --duration or --ramp-most, or "
            "start the server with a greater --max-duration",
            length_s, (double)options->max_duration_us / 1e6);
    if (!sat_peer_init(&session->peer, (size_t)paths, (size_t)packet_bytes))
        return error_set(error, SAT_ERROR_SIZE, "the server has no memory");
    session->length_us = (uint64_t)(length_s * 1e6);
    session->memory_bytes = options->memory_bytes;
    session->up = json_is_true(json_object_get(request, "up"));
    session->down = json_is_true(json_object_get(request, "down"));
    session->peer.ack_via = json_is_true(json_object_get(request, "ack_via"));
    session->peer.train_packets = (uint32_t)train;
    session->peer.every_us = (uint64_t)every_us;
    session->peer.sizes = sizes;
    session->peer.via_path = via_path < 0 ? SAT_NO_PATH : (size_t)via_path;
    return true;
}

bool sat_session_begin(sat_session *session, const sat_options *options, sat_control *control, const sat_nonces *nonces,
                       const json_t *request, char *error) {
    sat_socket *data_socket = session->data_socket;
    sat_socket *ack_socket = session->ack_socket;
    memset(session, 0, sizeof *session);
    session->data_socket = data_socket;
    session->ack_socket = ack_socket;
    session->control.fd = -1;
    if (!check(session, options, request, error))
        return false;
    sat_peer *peer = &session->peer;
    peer->on_control = on_hello;
    peer->on_data = on_data;
    peer->user = session;
    if (!sat_auth_random(session->cookie_key, SAT_KEY_BYTES) ||
        !sat_auth_tag(options->token, SAT_CLIENT, nonces, &peer->tag_in) ||
        !sat_auth_tag(options->token, SAT_SERVER, nonces, &peer->tag_out)) {
        sat_peer_free(peer);
        return error_set(error, SAT_ERROR_SIZE, "the server cannot make keys");
    }
    session->control = *control;
    control->fd = -1;
    session->stage = SAT_SETUP;
    session->deadline_us = clock_us() + SETUP_US;
    session->drops_before = data_socket->dropped;
    return true;
}

static json_t *path_figures(const sat_peer *peer, size_t k) {
    const sat_flow *flow = &peer->flows[k];
    const sat_records *records = &flow->ledger.records;
    return json_pack("{s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "lost", (json_int_t)sat_ledger_lost(&flow->ledger),
                     "bytes", (json_int_t)(records->bytes + records->blocks * FRAME_BYTES), "records",
                     (json_int_t)records->count, "full", (int)records->full, "disordered",
                     (json_int_t)flow->ledger.disordered, "received", (json_int_t)flow->ledger.received, "sent",
                     (json_int_t)sat_peer_sent(peer, k), "most_in_flight", (json_int_t)flow->most_in_flight);
}

static void hand_over(sat_session *session) {
    json_t *paths = json_array();
    session->peer.sending = false;
    for (size_t k = 0; k < session->peer.path_count; k++) {
        session->peer.flows[k].receives = false; /* the records are final */
        json_array_append_new(paths, path_figures(&session->peer, k));
    }
    json_t *done = json_pack("{s:b, s:o, s:I, s:I}", "done", 1, "paths", paths, "socket_drops",
                             (json_int_t)(session->data_socket->dropped - session->drops_before), "strays",
                             (json_int_t)session->peer.strays);
    session->stage = sat_control_write(&session->control, done) ? SAT_HANDOVER : SAT_OVER;
    session->deadline_us = clock_us() + HANDOVER_US;
    session->path = 0;
    session->block = session->peer.flows[0].ledger.records.first;
    session->offset = 0;
}

void sat_session_on_readable(sat_session *session) {
    json_t *line = NULL;
    sat_line found = sat_control_read(&session->control, &line);
    if (found == SAT_LINE_BAD) {
        session->stage = SAT_OVER; /* the client is gone: stop sending at once */
    } else if (found == SAT_LINE_READ) {
        if (session->stage == SAT_SETUP && json_is_true(json_object_get(line, "go")))
            start(session);
        else if (session->go_expected && json_is_true(json_object_get(line, "go")))
            session->go_expected = false;
        else if (session->stage == SAT_RUNNING && json_is_true(json_object_get(line, "stop")))
            hand_over(session);
        else
            session->stage = SAT_OVER;
        json_decref(line);
    }
}

/* Returns the length of the rest of the block's frame, or of its header; *part: its bytes. */
static size_t frame_part(const sat_session *session, uint8_t header[FRAME_BYTES], const uint8_t **part) {
    size_t used = session->block->used;
    for (size_t i = 0; i < FRAME_BYTES; i++)
        header[i] = (uint8_t)(used >> (24 - 8 * i));
    bool in_header = session->offset < FRAME_BYTES;
    *part = in_header ? header + session->offset : session->block->data + (session->offset - FRAME_BYTES);
    return in_header ? FRAME_BYTES - session->offset : used + FRAME_BYTES - session->offset;
}

void sat_session_on_writable(sat_session *session) {
    while (session->stage == SAT_HANDOVER) {
        if (!session->block) {
            if (++session->path >= session->peer.path_count) {
                session->stage = SAT_OVER;
                return;
            }
            session->block = session->peer.flows[session->path].ledger.records.first;
            session->offset = 0;
            continue;
        }
        uint8_t header[FRAME_BYTES];
        const uint8_t *part;
        const size_t length = frame_part(session, header, &part);
        ptrdiff_t n = sat_control_push(&session->control, part, length);
        if (n <= 0) {
            session->stage = n < 0 ? SAT_OVER : session->stage;
            return;
        }
        session->deadline_us = clock_us() + HANDOVER_US;
        session->offset += (size_t)n;
        if (session->offset == session->block->used + FRAME_BYTES) {
            session->block = session->block->next;
            session->offset = 0;
        }
    }
}

void sat_session_on_time(sat_session *session, uint64_t now) {
    if (session->stage == SAT_IDLE || session->stage == SAT_OVER || now < session->deadline_us)
        return;
    if (session->stage == SAT_RUNNING && session->peer.sending) {
        session->peer.sending = false; /* the announced time is over; the client's stop may be in flight */
        session->deadline_us = now + GRACE_US;
    } else {
        session->stage = SAT_OVER;
    }
}

void sat_session_end(sat_session *session) {
    sat_control_close(&session->control);
    sat_peer_free(&session->peer);
    session->stage = SAT_IDLE;
}
