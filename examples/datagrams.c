/* A multipath QUIC client with libxlink. Sends datagrams (RFC 9221) to `serve`, one every 10 ms, and prints how many
 * came back and the longest time. One path for each LOCAL address.
 *
 *     datagrams 127.0.0.1:4433 100 127.0.0.1 127.0.0.2
 *
 * It does not verify the server's certificate; see xl_credentials_client() for how to. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <xlink/udp.h>
#include <xlink/xlink.h>

#include "address.h"

#define INTERVAL_US 10000
#define WAIT_US     1000000 /* for the last datagrams to return */

typedef struct {
    xl_connection *connection;
    uint64_t wanted, sent, returned, lost, slowest_us, next_at; /* next_at: XL_NEVER before the handshake is complete */
    bool is_closing, is_over;
} sender;

/* Sends a datagram that contains the current time. */
static void send_one(sender *s, uint64_t now) {
    uint8_t data[sizeof now];
    memcpy(data, &now, sizeof now);
    if (xl_connection_send_datagram(s->connection, data, sizeof data, s->sent, now) != XL_OK)
        fprintf(stderr, "datagram %llu is not sent\n", (unsigned long long)s->sent);
    s->sent++;
    s->next_at += s->sent < s->wanted ? INTERVAL_US : WAIT_US;
}

static void act(sender *s, uint64_t now) {
    while (s->next_at <= now && s->sent < s->wanted)
        send_one(s, now);
    if (s->sent < s->wanted || (s->returned < s->wanted && now < s->next_at) || s->is_closing)
        return;
    s->is_closing = true;
    xl_connection_close(s->connection, 0, "done", now);
}

static void read_returned(sender *s, uint64_t now) {
    uint64_t sent_at;
    size_t len;
    while (xl_connection_read_datagram(s->connection, (uint8_t *)&sent_at, sizeof sent_at, &len)) {
        s->returned++;
        s->slowest_us = now - sent_at > s->slowest_us ? now - sent_at : s->slowest_us;
    }
}

static void handle(sender *s, const xl_event *event, uint64_t now) {
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        s->next_at = now;
        if (xl_connection_datagram_capacity(s->connection) < sizeof now)
            xl_connection_close(s->connection, 1, "the server takes no datagrams", now);
        break;
    case XL_EVENT_DATAGRAM:
        read_returned(s, now);
        break;
    case XL_EVENT_DATAGRAM_LOST:
        s->lost++;
        break;
    case XL_EVENT_CLOSED:
        if (!s->is_closing)
            fprintf(stderr, "the connection ended early: %s\n", event->reason);
        s->is_over = true;
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 3 + XL_MAX_PATHS) {
        fprintf(stderr, "usage: datagrams SERVER:PORT COUNT LOCAL [LOCAL ...]\n");
        return 2;
    }
    const xl_addr server = server_parse(argv[1]);
    sender s = {.wanted = number_parse(argv[2]), .next_at = XL_NEVER};
    xl_config config;
    xl_config_init(&config);
    config.alpn = "hq-interop";
    config.scheme.enable_multipath = true;
    config.limits.max_datagram_frame_bytes = 1500;
    config.credentials = xl_credentials_client(NULL);
    if (xl_udp_random_key(config.random_key) != 0) {
        fprintf(stderr, "the system gives no random numbers\n");
        return 1;
    }
    int error = 0;
    xl_endpoint *endpoint = xl_endpoint_new(&config, xl_udp_now(), &error);
    xl_udp *udp = xl_udp_new();
    for (int i = 3; i < argc && endpoint && udp; i++) {
        xl_addr local = address_parse(argv[i]), bound;
        if (xl_udp_add_socket(udp, &local, &bound) < 0) {
            fprintf(stderr, "cannot send from %s\n", argv[i]);
            return 1;
        }
        if (i == 3)
            s.connection = xl_endpoint_connect(endpoint, "example.org", &bound, &server, XL_TECH_UNKNOWN, xl_udp_now());
        else
            xl_connection_add_path(s.connection, &bound, &server, XL_TECH_UNKNOWN, xl_udp_now());
    }
    while (s.connection && !s.is_over) {
        xl_udp_flush(udp, endpoint, xl_udp_now());
        const uint64_t timeout = xl_endpoint_next_timeout(endpoint), now = xl_udp_now();
        const uint64_t at = s.is_closing || timeout < s.next_at ? timeout : s.next_at;
        struct pollfd wait = {.fd = xl_udp_fd(udp), .events = POLLIN};
        poll(&wait, 1, at == XL_NEVER ? -1 : at <= now ? 0 : (int)((at - now + 999) / 1000));
        xl_udp_receive(udp, endpoint, xl_udp_now());
        xl_endpoint_handle_timeout(endpoint, xl_udp_now());
        xl_event event;
        while (xl_endpoint_poll_event(endpoint, &event))
            handle(&s, &event, xl_udp_now());
        act(&s, xl_udp_now());
    }
    printf("%llu of %llu datagrams came back, the slowest after %llu us; %llu were lost on the way there\n",
           (unsigned long long)s.returned, (unsigned long long)s.sent, (unsigned long long)s.slowest_us,
           (unsigned long long)s.lost);
    xl_endpoint_free(endpoint);
    xl_udp_free(udp);
    xl_credentials_free(config.credentials);
    return s.is_closing ? 0 : 1;
}
