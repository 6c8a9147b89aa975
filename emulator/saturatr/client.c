#include "emulator/saturatr/client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/wait.h"
#include "emulator/saturatr/client_setup.h"

#define OPENING_US       10000000u /* time in which every path must answer */
#define OPENING_HELLO_US 100000u   /* between HELLOs without an answer */
#define PROBE_US         20000u    /* between measurements of base RTT and clock */
#define PROBES           12u
#define PROBING_US       3000000u
#define SYNC_US          250000u  /* between measurements of the clock while recording */
#define LINGER_US        2000000u /* for the last packets after the end of a light recording */
#define LATE_PROBES_US   200000u  /* duration of clock measurements after the recording */
#define LATE_MOST_US     2000000u /* the same if none is answered */
#define FETCH_US         120000000u
#define LONGEST_WAIT_US  100000u
#define BLOCK_HEADER     4u

static void on_welcome(void *user, const sat_packet *packet, const sat_datagram *datagram, sat_socket *socket) {
    sat_client *client = user;
    sat_channel *channel = &client->channels[packet->channel];
    sat_route *route = &client->peer.routes[packet->channel];
    if (packet->type != SAT_WELCOME || route->socket != socket || packet->echo_us > datagram->received_us ||
        packet->seq >= channel->hellos)
        return;
    memcpy(channel->cookie, packet->cookie, SAT_COOKIE_BYTES);
    if (!(packet->flags & SAT_FLAG_VALID)) {
        channel->next_hello_us = 0; /* send again, with the cookie */
        return;
    }
    uint64_t rtt = datagram->received_us - packet->echo_us;
    route->open = true;
    channel->answers++;
    channel->least_rtt_us = rtt < channel->least_rtt_us ? rtt : channel->least_rtt_us;
    sat_clock_add(&client->recording.clock, packet->echo_us, packet->received_us, packet->sent_us,
                  datagram->received_us, client->late);
}

static void send_hello(sat_client *client, size_t channel, uint64_t now) {
    sat_packet hello = {.type = SAT_HELLO,
                        .channel = (uint8_t)channel,
                        .tag = client->peer.tag_out,
                        .seq = client->channels[channel].hellos++,
                        .sent_us = now};
    memcpy(hello.cookie, client->channels[channel].cookie, SAT_COOKIE_BYTES);
    sat_peer_send_control(&client->peer, &hello);
}

/* Sends the due HELLOs on the channels from `first` on. Returns when the next one is due. */
static uint64_t send_hellos(sat_client *client, size_t first, uint64_t pause_us) {
    uint64_t now = clock_us();
    uint64_t next = SAT_NEVER;
    for (size_t i = first; i < SAT_MAX_CHANNELS; i++) {
        sat_channel *channel = &client->channels[i];
        if (!client->peer.routes[i].socket)
            continue;
        if (channel->next_hello_us <= now) {
            send_hello(client, i, now);
            channel->next_hello_us = now + (client->peer.routes[i].open ? pause_us : OPENING_HELLO_US);
        }
        next = channel->next_hello_us < next ? channel->next_hello_us : next;
    }
    return next;
}

static void take_line(sat_client *client) {
    json_t *line = NULL;
    sat_line found = sat_control_read(&client->control, &line);
    if (found == SAT_LINE_NONE)
        return;
    const char *reason = found == SAT_LINE_READ ? json_string_value(json_object_get(line, "error")) : NULL;
    sat_client_fail(client, "the server %s%.400s", !reason ? "ended the connection" : "says: ", !reason ? "" : reason);
    client->hung_up = true;
    json_decref(line);
}

/* Waits for packets until until_us at the latest, and handles them. */
static void wait_and_receive(sat_client *client, uint64_t until_us) {
    struct pollfd polls[SAT_CLIENT_SOCKETS + 1];
    sigset_t none;
    uint64_t now = clock_us();
    uint64_t wait = until_us <= now ? 0 : until_us - now < LONGEST_WAIT_US ? until_us - now : LONGEST_WAIT_US;
    struct timespec timeout = {.tv_nsec = (long)wait * 1000};
    for (size_t i = 0; i < SAT_CLIENT_SOCKETS; i++)
        polls[i] = (struct pollfd){.fd = client->sockets[i].fd, .events = POLLIN};
    polls[SAT_CLIENT_SOCKETS] = (struct pollfd){.fd = client->fetching ? -1 : client->control.fd, .events = POLLIN};
    sigemptyset(&none);
    if (ppoll(polls, SAT_CLIENT_SOCKETS + 1, &timeout, &none) <= 0)
        return;
    wait_handle_signals(&none);
    for (size_t i = 0; i < SAT_CLIENT_SOCKETS; i++)
        if (polls[i].revents != 0)
            sat_peer_receive(&client->peer, &client->sockets[i]);
    if (polls[SAT_CLIENT_SOCKETS].revents != 0)
        take_line(client);
}

static bool all_channels(const sat_client *client, uint64_t answers) {
    for (size_t i = 0; i < SAT_MAX_CHANNELS; i++)
        if (client->peer.routes[i].socket && client->channels[i].answers < answers)
            return false;
    return true;
}

static bool fail_silent_channel(sat_client *client) {
    for (size_t i = 0; i < SAT_MAX_CHANNELS; i++) {
        if (client->peer.routes[i].socket && client->channels[i].answers == 0) {
            char text[SAT_ADDRESS_TEXT];
            const char *name = i < SAT_MAX_PATHS || !client->options->ack_via.family
                                   ? client->options->paths[i % SAT_MAX_PATHS].name
                                   : "--ack-via";
            sat_client_fail(client, "no answer from UDP %s over %s; see routes, firewalls, and whether the path is up",
                            xl_addr_format(&client->peer.routes[i].remote, text, sizeof text), name);
        }
    }
    return false;
}

/* Opens all channels, then measures base RTT and clock while the links are idle. */
static bool open_and_probe(sat_client *client) {
    uint64_t start = clock_us();
    client->peer.on_control = on_welcome;
    client->peer.user = client;
    for (size_t i = 0; i < SAT_MAX_CHANNELS; i++)
        client->channels[i].least_rtt_us = SAT_NEVER;
    while (!all_channels(client, PROBES) && !client->hung_up && !wait_is_ended) {
        uint64_t now = clock_us();
        bool open = all_channels(client, 1);
        if (now >= start + OPENING_US || (open && now >= start + PROBING_US))
            break;
        wait_and_receive(client, send_hellos(client, 0, PROBE_US));
    }
    if (client->hung_up)
        return false;
    if (wait_is_ended)
        return sat_client_fail(client, "interrupted before the recording began");
    return all_channels(client, 1) || fail_silent_channel(client);
}

static bool saturated(const sat_client *client) {
    for (size_t k = 0; k < client->options->path_count; k++) {
        const sat_flow *flow = &client->peer.flows[k];
        if ((client->options->up && !sat_window_saturated(&flow->window)) ||
            (client->options->down && !sat_ledger_saturated(&flow->ledger)))
            return false;
    }
    return true;
}

static bool broken(sat_client *client) {
    if (client->peer.fatal == EMSGSIZE && !client->hung_up) {
        sat_client_fail(client, "path %s does not take IP packets of %zu bytes; give --packet-bytes",
                        client->options->paths[client->peer.fatal_path].name, client->options->packet_bytes);
        client->hung_up = true;
    }
    return client->hung_up;
}

static void turn(sat_client *client, uint64_t until_us) {
    uint64_t next = sat_peer_send(&client->peer);
    /* A link that is recorded under light load carries only trains. */
    bool silent = client->options->mode == SAT_LIGHT && !client->options->ack_via.family;
    uint64_t hello = silent ? SAT_NEVER : send_hellos(client, SAT_MAX_PATHS, SYNC_US);
    next = next < hello ? next : hello;
    wait_and_receive(client, next < until_us ? next : until_us);
}

static void fix_t0(sat_client *client, uint64_t start) {
    sat_recording *r = &client->recording;
    r->t0_us = clock_us();
    r->t0_epoch_us = clock_ns(CLOCK_REALTIME) / 1000;
    r->ramp_us = r->t0_us - start;
}

/* Fills the links. Sets t0 when all links are full, or when the ramp must end. A light recording begins at once. */
static bool begin(sat_client *client) {
    const sat_options *o = client->options;
    sat_recording *r = &client->recording;
    if (!sat_control_write(&client->control, json_pack("{s:b}", "go", 1)))
        return sat_client_fail(client, "the server ended the connection");
    uint64_t start = clock_us();
    sat_peer_start(&client->peer, o->up, o->down, o->memory_bytes / o->path_count, start);
    while (o->mode == SAT_HEAVY) {
        uint64_t now = clock_us();
        r->saturated = saturated(client);
        if (now >= start + o->ramp_most_us || (r->saturated && now >= start + o->ramp_us))
            break;
        turn(client, start + (now < start + o->ramp_us ? o->ramp_us : o->ramp_most_us));
        if (broken(client))
            return false;
        if (wait_is_ended)
            return sat_client_fail(client, "interrupted before the recording began");
    }
    fix_t0(client, start);
    return true;
}

/* Waits for packets in flight at the end of a light recording, which belong to it. */
static bool linger(sat_client *client) {
    uint64_t end = clock_us() + LINGER_US;
    while (client->options->mode == SAT_LIGHT && clock_us() < end) {
        turn(client, end);
        if (broken(client))
            return false;
    }
    return true;
}

static bool record(sat_client *client) {
    sat_recording *r = &client->recording;
    uint64_t end = r->t0_us + client->options->duration_us;
    uint64_t now;
    while ((now = clock_us()) < end && !wait_is_ended) {
        client->late = now >= r->t0_us + client->options->duration_us / 2;
        turn(client, end);
        if (broken(client))
            return false;
    }
    uint64_t whole_ms = (now - r->t0_us) / 1000u * 1000u;
    r->duration_us = whole_ms < client->options->duration_us ? whole_ms : client->options->duration_us;
    client->peer.sending = false;
    client->late = true;
    if (r->duration_us == 0)
        return sat_client_fail(client, "interrupted before anything was recorded");
    return linger(client);
}

/* Makes clock exchanges after the links are no longer filled. */
static void probe_clock_again(sat_client *client) {
    uint64_t start = clock_us();
    uint64_t before = client->recording.clock.exchanges;
    for (size_t i = SAT_MAX_PATHS; i < SAT_MAX_CHANNELS; i++)
        client->channels[i].next_hello_us = 0;
    for (;;) {
        uint64_t now = clock_us();
        bool answered = client->recording.clock.exchanges > before;
        if (now >= start + (answered ? LATE_PROBES_US : LATE_MOST_US))
            return;
        wait_and_receive(client, send_hellos(client, SAT_MAX_PATHS, PROBE_US));
    }
}

/* Fetches the records of one path, in the server's blocks. */
static bool fetch_records(sat_client *client, size_t k, uint64_t bytes, uint64_t deadline) {
    sat_records *records = &client->uplinks[k];
    uint8_t header[BLOCK_HEADER];
    sat_records_init(records, client->options->memory_bytes / client->options->path_count);
    while (bytes > 0) {
        if (!sat_control_octets(&client->control, header, sizeof header, deadline))
            return sat_client_fail(client, "the connection ended before all records of the server were here");
        size_t used = (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
        uint8_t *block =
            used <= SAT_BLOCK_BYTES && used + BLOCK_HEADER <= bytes ? sat_records_block(records, used) : NULL;
        if (!block)
            return sat_client_fail(client, "the server's records are malformed, or more than --memory allows");
        if (!sat_control_octets(&client->control, block, used, deadline))
            return sat_client_fail(client, "the connection ended before all records of the server were here");
        bytes -= used + BLOCK_HEADER;
    }
    return true;
}

static uint64_t figure(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

/* Returns the number of packets that a server says it sent in a light recording, at most the possible number. */
static uint64_t sent_in_trains(const sat_options *o, uint64_t sent) {
    uint64_t most = (o->duration_us / o->every_us + 2) * o->train_packets;
    return sent < most ? sent : most;
}

static void set_directions(sat_client *client, size_t k, const json_t *server) {
    sat_recorded_path *p = &client->recording.paths[k];
    const sat_flow *flow = &client->peer.flows[k];
    p->base_rtt_ms = (double)client->channels[k].least_rtt_us / 1000.0;
    p->up = (sat_direction){.recorded = client->options->up,
                            .records = &client->uplinks[k],
                            .lost = figure(server, "lost"),
                            .disordered = figure(server, "disordered"),
                            .sent = sat_peer_sent(&client->peer, k),
                            .most_in_flight = flow->most_in_flight,
                            .incomplete = json_is_true(json_object_get(server, "full"))};
    p->down = (sat_direction){.recorded = client->options->down,
                              .records = &flow->ledger.records,
                              .lost = sat_ledger_lost(&flow->ledger),
                              .disordered = flow->ledger.disordered,
                              .sent = figure(server, "sent"),
                              .most_in_flight = figure(server, "most_in_flight"),
                              .incomplete = flow->ledger.records.full};
    if (client->options->mode == SAT_LIGHT)
        p->down.sent = sent_in_trains(client->options, p->down.sent);
}

static bool fetch(sat_client *client) {
    sat_recording *r = &client->recording;
    uint64_t deadline = clock_us() + FETCH_US;
    json_t *done = NULL;
    if (!sat_control_write(&client->control, json_pack("{s:b}", "stop", 1)))
        return sat_client_fail(client, "the server ended the connection");
    client->fetching = true;
    probe_clock_again(client);
    done = sat_client_line(client, FETCH_US, "before it gave its records");
    bool ok = done != NULL;
    for (size_t k = 0; k < client->options->path_count && ok; k++) {
        const json_t *path = json_array_get(json_object_get(done, "paths"), k);
        set_directions(client, k, path);
        ok = fetch_records(client, k, figure(path, "bytes"), deadline);
    }
    r->server_socket_drops = figure(done, "socket_drops");
    r->server_strays = figure(done, "strays");
    r->client_strays = client->peer.strays;
    for (size_t i = 0; i < SAT_CLIENT_SOCKETS; i++)
        r->client_socket_drops += client->sockets[i].dropped;
    json_decref(done);
    return ok;
}

static void warn(const sat_recording *r) {
    uint64_t drops = r->client_socket_drops + r->server_socket_drops;
    if (drops > 0)
        error_say("saturatr",
                  "%" PRIu64 " packets arrived but were dropped by full sockets: a program was too slow; raise "
                  "net.core.rmem_max or record fewer paths",
                  drops);
    if (!r->saturated && r->options->mode == SAT_HEAVY)
        error_say("saturatr", "not all links were full when the recording began; see --ramp-most");
    for (size_t k = 0; k < r->options->path_count; k++)
        if (r->paths[k].up.incomplete || r->paths[k].down.incomplete)
            error_say("saturatr", "the recording of %s is incomplete: the memory for records was full; see --memory",
                      r->options->paths[k].name);
}

/* Whether all results could be made. A direction without a row has no trace; one in which no packet of a size arrived
 * has no latencies. */
static bool has_made_all(sat_client *client) {
    for (size_t k = 0; k < client->options->path_count; k++) {
        const sat_direction *both[2] = {&client->recording.paths[k].up, &client->recording.paths[k].down};
        for (size_t d = 0; d < 2; d++)
            if (both[d]->missing[0] != '\0')
                return sat_client_fail(client, "%s", both[d]->missing);
    }
    return true;
}

static bool is_free(sat_client *client) {
    char path[PATH_MAX];
    sat_session_path(client->options, path, sizeof path);
    return access(path, F_OK) != 0 ||
           sat_client_fail(client,
                           "%.300s is of an earlier recording, which another one would overwrite; give --out "
                           "another folder",
                           path);
}

static sat_outcome run(sat_client *client) {
    if (!is_free(client))
        return SAT_CANNOT_START;
    if (mkdir(client->options->out, 0755) != 0 && errno != EEXIST) {
        sat_client_fail(client, "cannot make %.300s: %s", client->options->out, strerror(errno));
        return SAT_CANNOT_START;
    }
    if (!sat_client_connect(client) || !sat_client_open_channels(client) || !open_and_probe(client))
        return SAT_CANNOT_START;
    if (!begin(client) || !record(client) || !fetch(client) || !sat_recording_write(&client->recording, client->error))
        return SAT_FAILED;
    warn(&client->recording);
    fputs(client->recording.summary_text, stdout);
    sat_recording_tell_replay(&client->recording, stdout);
    return has_made_all(client) ? SAT_DONE : SAT_FAILED;
}

sat_outcome sat_client_run(const sat_options *options, int argc, char **argv, char *error) {
    static sat_client client;
    memset(&client, 0, sizeof client);
    client.options = options;
    client.control.fd = -1;
    client.recording.options = options;
    client.recording.argc = argc;
    client.recording.argv = argv;
    for (size_t i = 0; i < SAT_CLIENT_SOCKETS; i++)
        client.sockets[i].fd = -1;
    sat_outcome outcome = run(&client);
    snprintf(error, SAT_ERROR_SIZE, "%s", client.error);
    sat_client_close(&client);
    return outcome;
}
