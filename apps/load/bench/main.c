/* endpoint-bench: processor time of a server's endpoint by number of connections.
 *
 * A server and many clients run in one process on a virtual clock. Only the public interface is used, so that this file
 * can measure any revision of the library. Requests come at a constant rate, distributed over all connections, so the
 * endpoint sends and receives the same amount with any number of them. Only processor time within the server's calls
 * counts. Three phases: all connect; requests; all close. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "xlink/xlink.h"

#define PATHS          2
#define DELAY_US       10000 /* one way */
#define TICK_US        1000  /* between two checks of the clients' timers */
#define CONNECT_GAP_US 500
#define REQUEST_GAP_US 2000
#define RESPONSE_BYTES 10000 /* small enough to be sent without waiting for the congestion window or the pacer */
#define DATAGRAM_BYTES 1452

typedef struct {
    uint64_t at;
    xl_datagram head;
    uint8_t data[DATAGRAM_BYTES];
} packet;

/* One direction. All packets have the same delay, so they arrive in the order of sending. */
typedef struct {
    packet *ring;
    size_t first, count, cap;
} wire;

typedef struct {
    xl_endpoint *endpoint;
    xl_connection *connection;
    uint64_t timeout;
    bool connected, over;
} client;

typedef struct {
    double cpu_s;
    uint64_t rounds, packets; /* packets: sum of both directions */
} cost;

typedef struct {
    uint64_t now;
    size_t count, connected, answered, ended; /* number of clients; of them connected, … */
    client *clients;
    xl_endpoint *server;
    uint64_t server_timeout, next_tick;
    wire to_server, to_clients;
    cost cost;
} bench;

static void fail(const char *what) {
    fprintf(stderr, "endpoint-bench: %s.\n", what);
    exit(1);
}

/* ---- The wire ---- */

static packet *wire_room(wire *w) {
    if (w->count == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 1024;
        packet *grown = malloc(cap * sizeof *grown);
        if (!grown)
            fail("out of memory");
        for (size_t i = 0; i < w->count; i++)
            grown[i] = w->ring[(w->first + i) % w->cap];
        free(w->ring);
        *w = (wire){.ring = grown, .count = w->count, .cap = cap};
    }
    return &w->ring[(w->first + w->count) % w->cap];
}

static packet *wire_head(const wire *w, uint64_t now) {
    return w->count > 0 && w->ring[w->first].at <= now ? &w->ring[w->first] : NULL;
}

static void wire_drop_head(wire *w) {
    w->first = (w->first + 1) % w->cap;
    w->count--;
}

/* Sends all packets of the endpoint, with local and remote address exchanged for the receiver. */
static uint64_t flush(bench *b, xl_endpoint *endpoint, wire *w) {
    for (uint64_t n = 0;; n++) {
        packet *p = wire_room(w);
        xl_datagram d;
        if (xl_endpoint_transmit(endpoint, p->data, sizeof p->data, &d, b->now) == 0)
            return n;
        p->at = b->now + DELAY_US;
        p->head = (xl_datagram){.local = d.remote, .remote = d.local, .len = d.len};
        w->count++;
    }
}

/* ---- Addresses ---- */

static xl_addr client_addr(size_t number, unsigned path) {
    return (xl_addr){
        .family = 4, .port = 4000, .ip = {10, (uint8_t)path, (uint8_t)(number >> 8), (uint8_t)(number & 255)}};
}

static xl_addr server_addr(void) {
    return (xl_addr){.family = 4, .port = 443, .ip = {192, 0, 2, 1}};
}

static client *client_at(const bench *b, const xl_addr *a) {
    return &b->clients[(size_t)a->ip[2] << 8 | a->ip[3]];
}

/* ---- The server: the loop of xlink.h, its processor time taken ---- */

static void answer(xl_connection *c, uint64_t stream) {
    static const uint8_t response[RESPONSE_BYTES];
    uint8_t request[64];
    bool fin = false;
    while (xl_stream_read(c, stream, request, sizeof request, &fin) > 0)
        ;
    if (fin && xl_stream_send(c, stream, response, sizeof response, true, NULL) != RESPONSE_BYTES)
        fail("a response did not fit the send buffer");
}

static void server_events(bench *b) {
    xl_event e;
    while (xl_endpoint_poll_event(b->server, &e)) {
        if (e.type == XL_EVENT_STREAM_READABLE)
            answer(e.connection, e.stream_id);
        if (e.type == XL_EVENT_CLOSED) {
            xl_connection_free(e.connection);
            b->ended++;
        }
    }
}

static void server_round(bench *b) {
    double from = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
    for (packet *p; (p = wire_head(&b->to_server, b->now)); wire_drop_head(&b->to_server)) {
        xl_endpoint_receive(b->server, &p->head, p->data, b->now);
        b->cost.packets++;
    }
    xl_endpoint_handle_timeout(b->server, b->now);
    server_events(b);
    b->cost.packets += flush(b, b->server, &b->to_clients);
    b->server_timeout = xl_endpoint_next_timeout(b->server);
    b->cost.cpu_s += (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9 - from;
    b->cost.rounds++;
}

/* ---- Clients ---- */

static void client_events(bench *b, client *c) {
    xl_event e;
    uint8_t data[8192];
    while (xl_endpoint_poll_event(c->endpoint, &e)) {
        bool fin = false;
        if (e.type == XL_EVENT_STREAM_READABLE) {
            while (xl_stream_read(c->connection, e.stream_id, data, sizeof data, &fin) > 0)
                ;
            b->answered += fin;
        }
        b->connected += e.type == XL_EVENT_CONNECTED;
        c->connected |= e.type == XL_EVENT_CONNECTED;
        c->over |= e.type == XL_EVENT_CLOSED;
    }
}

static void client_step(bench *b, client *c) {
    if (c->timeout <= b->now)
        xl_endpoint_handle_timeout(c->endpoint, b->now);
    client_events(b, c);
    flush(b, c->endpoint, &b->to_server);
    c->timeout = xl_endpoint_next_timeout(c->endpoint);
}

static void client_start(bench *b, size_t number, const xl_config *config) {
    client *c = &b->clients[number];
    xl_config own = *config;
    xl_addr to = server_addr();
    int error;
    if (xl_random_key_from_seed(number, "client", own.random_key) != 0)
        fail("no random key");
    c->endpoint = xl_endpoint_new(&own, b->now, &error);
    for (unsigned i = 0; c->endpoint && i < PATHS; i++) {
        xl_addr from = client_addr(number, i);
        if (i == 0)
            c->connection = xl_endpoint_connect(c->endpoint, "localhost", &from, &to, XL_TECH_WIFI, b->now);
        else if (c->connection && xl_connection_add_path(c->connection, &from, &to, XL_TECH_LTE, b->now) < 0)
            fail("no further path");
    }
    if (!c->connection)
        fail("out of memory");
    client_step(b, c);
}

static void client_request(bench *b, client *c) {
    uint64_t stream;
    if (xl_stream_open(c->connection, true, &stream) != 0 ||
        xl_stream_send(c->connection, stream, (const uint8_t *)"request", 7, true, NULL) != 7)
        fail("no request can be made");
    client_step(b, c);
}

static void clients_tick(bench *b) {
    for (size_t i = 0; i < b->count; i++)
        if (b->clients[i].connection && b->clients[i].timeout <= b->now)
            client_step(b, &b->clients[i]);
    b->next_tick += TICK_US;
}

/* ---- Time ---- */

static uint64_t first_arrival(const wire *w) {
    return w->count > 0 ? w->ring[w->first].at : XL_NEVER;
}

static void run_until(bench *b, uint64_t end) {
    for (;;) {
        uint64_t server = min_u64(b->server_timeout, first_arrival(&b->to_server));
        uint64_t at = min_u64(min_u64(server, b->next_tick), first_arrival(&b->to_clients));
        if (at >= end)
            break;
        b->now = at > b->now ? at : b->now;
        if (server <= b->now)
            server_round(b);
        for (packet *p; (p = wire_head(&b->to_clients, b->now)); wire_drop_head(&b->to_clients)) {
            client *c = client_at(b, &p->head.local);
            xl_endpoint_receive(c->endpoint, &p->head, p->data, b->now);
            client_step(b, c);
        }
        if (b->next_tick <= b->now)
            clients_tick(b);
    }
    b->now = end;
}

/* ---- The phases ---- */

static void report(bench *b, const char *phase, bool is_last) {
    printf("\"%s\": {\"cpu_s\": %.6f, \"packets\": %" PRIu64 ", \"rounds\": %" PRIu64 "}%s", phase, b->cost.cpu_s,
           b->cost.packets, b->cost.rounds, is_last ? "}\n" : ", ");
    b->cost = (cost){0};
}

static void connect_all(bench *b, const xl_config *config) {
    for (size_t i = 0; i < b->count; i++) {
        client_start(b, i, config);
        run_until(b, b->now + CONNECT_GAP_US);
    }
    run_until(b, b->now + 2000000);
    if (b->connected != b->count)
        fail("not all connected");
    report(b, "connect", false);
}

static void request_all(bench *b, uint64_t requests) {
    for (uint64_t i = 0; i < requests; i++) {
        client_request(b, &b->clients[i * 7919 % b->count]); /* 7919 is prime: spreads successive requests */
        run_until(b, b->now + REQUEST_GAP_US);
    }
    run_until(b, b->now + 1000000);
    if (b->answered != requests)
        fail("not all requests were answered");
    report(b, "requests", false);
}

static void end_all(bench *b) {
    for (size_t i = 0; i < b->count; i++) {
        xl_connection_close(b->clients[i].connection, 0, "done", b->now);
        client_step(b, &b->clients[i]);
    }
    run_until(b, b->now + 3000000);
    if (b->ended != b->count)
        fail("not all connections ended");
    report(b, "end", true);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || *end || n < least || n > most) {
        fprintf(stderr, "endpoint-bench: '%s' is not a whole number from %" PRIu64 " to %" PRIu64 ".\n", text, least,
                most);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: endpoint-bench CONNECTIONS REQUESTS\n", stderr);
        return 2;
    }
    bench b = {.now = 1000000, .next_tick = 1000000, .server_timeout = XL_NEVER};
    b.count = number(argv[1], 1, 65536);
    uint64_t requests = number(argv[2], 1, 100000000);
    b.clients = calloc(b.count, sizeof *b.clients);
    int error;
    xl_config config;
    xl_config_init(&config);
    config.scheme.enable_multipath = true;
    config.limits.max_udp_payload_bytes = config.limits.path_mtu_bytes = DATAGRAM_BYTES;
    config.limits.idle_timeout_us = 600000000;
    config.limits.max_connections = b.count;
    xl_config client_config = config;
    xl_credentials *client_credentials = client_config.credentials = xl_credentials_client(NULL);
    config.is_server = true;
    if (xl_random_key_from_seed(1, "server", config.random_key) != 0)
        fail("no random key");
    config.credentials = xl_credentials_self_signed_p256("localhost", config.random_key, 1700000000);
    b.server = xl_endpoint_new(&config, b.now, &error);
    if (!b.clients || !b.server)
        fail("out of memory");
    printf("{\"connections\": %zu, ", b.count);
    connect_all(&b, &client_config);
    request_all(&b, requests);
    end_all(&b);
    for (size_t i = 0; i < b.count; i++)
        xl_endpoint_free(b.clients[i].endpoint);
    xl_endpoint_free(b.server);
    xl_credentials_free(client_credentials);
    xl_credentials_free(config.credentials);
    free(b.to_server.ring);
    free(b.to_clients.ring);
    free(b.clients);
    return 0;
}
