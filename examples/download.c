/* A multipath QUIC client with libxlink: downloads N bytes from `serve`, over one path for each LOCAL address.
 *
 *     download 127.0.0.1:4433 10000000 127.0.0.1 127.0.0.2
 *
 * It does not verify the server's certificate; see xl_credentials_client() for how to. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <xlink/udp.h>
#include <xlink/xlink.h>

#include "address.h"

typedef struct {
    unsigned long long size;
    uint64_t received;
    bool is_finished, is_over;
} download;

static void request(download *d, xl_connection *connection) {
    char line[64];
    const int len = snprintf(line, sizeof line, "GET /%llu\r\n", d->size);
    uint64_t stream;
    if (xl_stream_open(connection, true, &stream) == XL_OK)
        xl_stream_send(connection, stream, (const uint8_t *)line, (size_t)len, true, NULL);
}

static void read_answer(download *d, xl_connection *connection, uint64_t stream) {
    uint8_t buf[16384];
    ssize_t n;
    while ((n = xl_stream_read(connection, stream, buf, sizeof buf, &d->is_finished)) > 0)
        d->received += (uint64_t)n;
}

static void print_paths(xl_connection *connection) {
    xl_path_stats path;
    for (size_t i = 0; xl_connection_path_stats(connection, i, &path) == XL_OK; i++) {
        char from[64];
        printf("path %d from %s: %llu bytes received, smoothed RTT %llu us\n", path.index,
               xl_addr_format(&path.local, from, sizeof from), (unsigned long long)path.bytes_received,
               (unsigned long long)path.srtt_us);
    }
}

static void handle(download *d, const xl_event *event, uint64_t now) {
    switch (event->type) {
    case XL_EVENT_CONNECTED:
        request(d, event->connection);
        break;
    case XL_EVENT_STREAM_READABLE:
        read_answer(d, event->connection, event->stream_id);
        if (d->is_finished) {
            print_paths(event->connection);
            xl_connection_close(event->connection, 0, "done", now);
        }
        break;
    case XL_EVENT_CLOSED:
        if (!d->is_finished)
            fprintf(stderr, "the connection ended early: %s\n", event->reason);
        d->is_over = true;
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 3 + XL_MAX_PATHS) {
        fprintf(stderr, "usage: download SERVER:PORT BYTES LOCAL [LOCAL ...]\n");
        return 2;
    }
    const xl_addr server = server_parse(argv[1]);
    download d = {.size = number_parse(argv[2])};
    xl_config config;
    xl_config_init(&config);
    config.alpn = "hq-interop";
    config.scheme.enable_multipath = true;
    config.credentials = xl_credentials_client(NULL);
    if (xl_udp_random_key(config.random_key) != 0) {
        fprintf(stderr, "the system gives no random numbers\n");
        return 1;
    }
    int error = 0;
    xl_endpoint *endpoint = xl_endpoint_new(&config, xl_udp_now(), &error);
    xl_udp *udp = xl_udp_new();
    xl_connection *connection = NULL;
    for (int i = 3; i < argc && endpoint && udp; i++) {
        xl_addr local = address_parse(argv[i]), bound;
        if (xl_udp_add_socket(udp, &local, &bound) < 0) {
            fprintf(stderr, "cannot send from %s\n", argv[i]);
            return 1;
        }
        if (i == 3)
            connection = xl_endpoint_connect(endpoint, "example.org", &bound, &server, XL_TECH_UNKNOWN, xl_udp_now());
        else
            xl_connection_add_path(connection, &bound, &server, XL_TECH_UNKNOWN, xl_udp_now());
    }
    while (connection && !d.is_over) {
        xl_udp_flush(udp, endpoint, xl_udp_now());
        const uint64_t at = xl_endpoint_next_timeout(endpoint), now = xl_udp_now();
        struct pollfd wait = {.fd = xl_udp_fd(udp), .events = POLLIN};
        poll(&wait, 1, at == XL_NEVER ? -1 : at <= now ? 0 : (int)((at - now + 999) / 1000));
        xl_udp_receive(udp, endpoint, xl_udp_now());
        xl_endpoint_handle_timeout(endpoint, xl_udp_now());
        xl_event event;
        while (xl_endpoint_poll_event(endpoint, &event))
            handle(&d, &event, xl_udp_now());
    }
    printf("%llu bytes received\n", (unsigned long long)d.received);
    xl_endpoint_free(endpoint);
    xl_udp_free(udp);
    xl_credentials_free(config.credentials);
    return d.is_finished ? 0 : 1;
}
