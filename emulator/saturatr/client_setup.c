#include "emulator/saturatr/client_setup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/net.h"
#include "base/numbers.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_US 5000000u
#define ANSWER_US  10000000u

json_t *sat_client_line(sat_client *client, uint64_t timeout_us, const char *what) {
    json_t *line = NULL;
    sat_line found = sat_control_wait(&client->control, &line, clock_us() + timeout_us);
    if (found != SAT_LINE_READ) {
        sat_client_fail(client, "the server %s %s", found == SAT_LINE_NONE ? "was silent" : "ended the connection",
                        what);
        return NULL;
    }
    const char *refusal = json_string_value(json_object_get(line, "error"));
    if (refusal) {
        sat_client_fail(client, "the server says: %.400s", refusal);
        json_decref(line);
        return NULL;
    }
    return line;
}

static bool wait_connected(int fd) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int status = ETIMEDOUT;
    socklen_t length = sizeof status;
    if (poll(&poll_fd, 1, (int)(CONNECT_US / 1000)) == 1)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &length);
    errno = status;
    return status == 0;
}

static bool connect_tcp(sat_client *client) {
    const sat_options *o = client->options;
    const xl_addr *local = o->ack_via.family ? &o->ack_via : &o->paths[0].local;
    char text[SAT_ADDRESS_TEXT];
    struct sockaddr_storage from, to;
    const socklen_t from_length = net_to_sockaddr(local, &from), to_length = net_to_sockaddr(&o->server, &to);
    int one = 1;
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&from, from_length) != 0) {
        sat_client_fail(client, "cannot use the local address %s: %s", xl_addr_format(local, text, sizeof text),
                        strerror(errno));
    } else if (connect(fd, (const struct sockaddr *)&to, to_length) != 0 && errno != EINPROGRESS) {
        sat_client_fail(client, "cannot connect to %s: %s", xl_addr_format(&o->server, text, sizeof text),
                        strerror(errno));
    } else if (!wait_connected(fd)) {
        sat_client_fail(client, "cannot connect to %s: %s; is a saturatr server running there?",
                        xl_addr_format(&o->server, text, sizeof text), strerror(errno));
    } else {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        sat_control_init(&client->control, fd);
        return true;
    }
    descriptor_close(&fd);
    return false;
}

/* Returns the path that the reliable interface belongs to, or SAT_NO_PATH. */
static size_t via_path(const sat_options *options) {
    for (size_t k = 0; k < options->path_count && options->ack_via.family; k++)
        if (net_same_ip(&options->ack_via, &options->paths[k].local))
            return k;
    return SAT_NO_PATH;
}

static json_t *request(const sat_client *client, const sat_nonces *nonces) {
    const sat_options *o = client->options;
    char nonce[2 * SAT_NONCE_BYTES + 1];
    char proof[2 * SAT_PROOF_BYTES + 1];
    uint8_t bytes[SAT_PROOF_BYTES];
    if (!sat_auth_proof(o->token, SAT_CLIENT, nonces, bytes))
        return NULL;
    hex_write(nonces->client, SAT_NONCE_BYTES, nonce);
    hex_write(bytes, SAT_PROOF_BYTES, proof);
    json_t *sizes = json_array();
    for (uint32_t i = 0; i < o->sizes.count; i++)
        json_array_append_new(sizes, json_integer((json_int_t)o->sizes.bytes[i]));
    uint64_t sending_us = o->duration_us + (o->mode == SAT_HEAVY ? o->ramp_most_us : 0);
    return json_pack("{s:s, s:s, s:I, s:b, s:b, s:I, s:f, s:b, s:I, s:I, s:I, s:o}", "nonce", nonce, "proof", proof,
                     "paths", (json_int_t)o->path_count, "up", (int)o->up, "down", (int)o->down, "packet_bytes",
                     (json_int_t)o->packet_bytes, "sending_s", (double)sending_us / 1e6, "ack_via",
                     (int)o->ack_via.family, "via_path",
                     client->peer.via_path == SAT_NO_PATH ? (json_int_t)-1 : (json_int_t)client->peer.via_path, "train",
                     (json_int_t)o->train_packets, "every_us", (json_int_t)o->every_us, "sizes", sizes);
}

/* Sets the remote addresses of the channels: the server's address with its ports. */
static void set_remotes(sat_client *client, uint16_t port, uint16_t ack_port) {
    for (size_t channel = 0; channel < SAT_MAX_CHANNELS; channel++) {
        sat_route *route = &client->peer.routes[channel];
        route->remote = client->options->server;
        route->remote.port = channel < SAT_MAX_PATHS ? port : ack_port;
    }
}

static bool take_greeting(sat_client *client, const sat_nonces *nonces, const json_t *line) {
    uint8_t given[SAT_PROOF_BYTES];
    uint8_t wanted[SAT_PROOF_BYTES];
    sat_peer *peer = &client->peer;
    json_int_t port = json_integer_value(json_object_get(line, "port"));
    json_int_t ack_port = json_integer_value(json_object_get(line, "ack_port"));
    const char *host = json_string_value(json_object_get(line, "host"));
    const char *kernel = json_string_value(json_object_get(line, "kernel"));
    if (!hex_read(json_string_value(json_object_get(line, "proof")), given, SAT_PROOF_BYTES) ||
        !sat_auth_proof(client->options->token, SAT_SERVER, nonces, wanted) ||
        !sat_auth_same(given, wanted, SAT_PROOF_BYTES) || port < 1 || port > UINT16_MAX || ack_port < 1 ||
        ack_port > UINT16_MAX || !host || !kernel)
        return sat_client_fail(client, "the server does not know the token, or is of another version");
    snprintf(client->recording.server_host, sizeof(client->recording.server_host), "%s", host);
    snprintf(client->recording.server_kernel, sizeof(client->recording.server_kernel), "%s", kernel);
    set_remotes(client, (uint16_t)port, (uint16_t)ack_port);
    return (sat_auth_tag(client->options->token, SAT_CLIENT, nonces, &peer->tag_out) &&
            sat_auth_tag(client->options->token, SAT_SERVER, nonces, &peer->tag_in)) ||
           sat_client_fail(client, "cannot make keys");
}

bool sat_client_connect(sat_client *client) {
    sat_nonces nonces;
    if (!sat_peer_init(&client->peer, client->options->path_count, client->options->packet_bytes))
        return sat_client_fail(client, "no memory");
    client->peer.ack_via = client->options->ack_via.family;
    client->peer.train_packets = client->options->train_packets;
    client->peer.every_us = client->options->every_us;
    client->peer.sizes = client->options->sizes;
    client->peer.via_path = via_path(client->options);
    if (!connect_tcp(client))
        return false;
    json_t *line = sat_client_line(client, ANSWER_US, "before it said hello");
    if (!line)
        return false;
    bool good = json_integer_value(json_object_get(line, "saturatr")) == SAT_PROTOCOL &&
                hex_read(json_string_value(json_object_get(line, "nonce")), nonces.server, SAT_NONCE_BYTES) &&
                sat_auth_random(nonces.client, SAT_NONCE_BYTES);
    json_decref(line);
    if (!good)
        return sat_client_fail(client, "what answers there is no saturatr server of this version");
    if (!sat_control_write(&client->control, request(client, &nonces)))
        return sat_client_fail(client, "cannot send the request to the server");
    line = sat_client_line(client, ANSWER_US, "before it answered the request");
    bool ok = line && take_greeting(client, &nonces, line);
    json_decref(line);
    return ok;
}

/* Finds the interface with the address. False: there is none. */
static bool find_interface(const xl_addr *local, char name[16]) {
    struct ifaddrs *list = NULL;
    bool found = false;
    if (getifaddrs(&list) != 0)
        return false;
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
        xl_addr at;
        if (i->ifa_addr && net_from_sockaddr(i->ifa_addr, &at) && net_same_ip(&at, local)) {
            snprintf(name, 16, "%s", i->ifa_name);
            found = true;
        }
    }
    freeifaddrs(list);
    return found;
}

static bool open_channel(sat_client *client, size_t channel, const xl_addr *local, const char *interface) {
    sat_socket *s = &client->sockets[channel];
    xl_addr bound = *local;
    if (!sat_socket_open(s, &bound, interface[0] == '\0' ? NULL : interface, client->error))
        return false;
    client->peer.routes[channel].socket = s;
    return true;
}

bool sat_client_open_channels(sat_client *client) {
    const sat_options *o = client->options;
    for (size_t k = 0; k < o->path_count; k++) {
        char *interface = client->recording.paths[k].interface;
        find_interface(&o->paths[k].local, interface);
        if (!open_channel(client, k, &o->paths[k].local, interface) ||
            (!o->ack_via.family && !open_channel(client, SAT_MAX_PATHS + k, &o->paths[k].local, interface)))
            return false;
    }
    char interface[16] = "";
    if (o->ack_via.family) {
        find_interface(&o->ack_via, interface);
        return open_channel(client, SAT_MAX_PATHS, &o->ack_via, interface);
    }
    return true;
}

void sat_client_close(sat_client *client) {
    sat_control_close(&client->control);
    for (size_t i = 0; i < SAT_CLIENT_SOCKETS; i++)
        sat_socket_close(&client->sockets[i]);
    for (size_t k = 0; k < SAT_MAX_PATHS; k++)
        sat_records_free(&client->uplinks[k]);
    sat_peer_free(&client->peer);
    sat_recording_free(&client->recording);
}
