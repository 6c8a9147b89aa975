/* A QUIC server with libxlink: HTTP/0.9 (ALPN "hq-interop"). The response to "GET /N" has N bytes. Each datagram
 * (RFC 9221) is sent back.
 *
 *     serve 127.0.0.1:4433
 *
 * It offers multipath, so a client may use several addresses at once. The certificate is self-signed. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xlink/udp.h>
#include <xlink/xlink.h>

#include "address.h"

#define MAX_STREAMS 64 /* open responses, over all connections */

typedef struct {
    xl_connection *connection; /* NULL: free slot */
    uint64_t stream;
    char request[64];
    size_t request_len;
    uint64_t left; /* bytes of the response that are not written yet */
    bool is_answering;
} answer;

static answer answers[MAX_STREAMS];

static answer *answer_of(xl_connection *connection, uint64_t stream) {
    answer *unused = NULL;
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        if (answers[i].connection == connection && answers[i].stream == stream)
            return &answers[i];
        if (!answers[i].connection)
            unused = &answers[i];
    }
    if (unused)
        *unused = (answer){.connection = connection, .stream = stream};
    return unused;
}

/* Writes as much of the response as the send buffer takes. Called again at XL_EVENT_STREAM_WRITABLE. */
static void write_answer(answer *a) {
    static const uint8_t zeros[16384];
    while (a->is_answering) {
        const size_t len = a->left < sizeof zeros ? (size_t)a->left : sizeof zeros;
        const ssize_t taken = xl_stream_send(a->connection, a->stream, zeros, len, len == a->left, NULL);
        if (taken < 0 || (taken == 0 && len > 0))
            return;
        a->left -= (uint64_t)taken;
        a->is_answering = a->left > 0;
    }
}

static void read_request(answer *a) {
    bool fin = false;
    ssize_t n;
    do {
        uint8_t *at = (uint8_t *)a->request + a->request_len;
        n = xl_stream_read(a->connection, a->stream, at, sizeof a->request - 1 - a->request_len, &fin);
        a->request_len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    if (!fin || a->is_answering)
        return;
    a->request[a->request_len] = '\0';
    if (strncmp(a->request, "GET /", 5) != 0) {
        xl_stream_reset(a->connection, a->stream, 1);
        return;
    }
    a->left = strtoull(a->request + 5, NULL, 10);
    a->is_answering = true;
    write_answer(a);
}

static void forget(const xl_event *event) {
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        const bool all = event->type == XL_EVENT_CLOSED;
        if (answers[i].connection == event->connection && (all || answers[i].stream == event->stream_id))
            answers[i].connection = NULL;
    }
}

static void echo_datagrams(xl_connection *connection) {
    uint8_t data[1500];
    size_t len;
    while (xl_connection_read_datagram(connection, data, sizeof data, &len))
        xl_connection_send_datagram(connection, data, len, 0, xl_udp_now());
}

static void handle(const xl_event *event) {
    answer *a;
    switch (event->type) {
    case XL_EVENT_STREAM_READABLE:
        a = answer_of(event->connection, event->stream_id);
        if (a)
            read_request(a);
        else
            xl_stream_reset(event->connection, event->stream_id, 1);
        break;
    case XL_EVENT_STREAM_WRITABLE:
        write_answer(answer_of(event->connection, event->stream_id));
        break;
    case XL_EVENT_DATAGRAM:
        echo_datagrams(event->connection);
        break;
    case XL_EVENT_STREAM_RESET:
    case XL_EVENT_STREAM_STOPPED:
    case XL_EVENT_STREAM_DONE:
        forget(event);
        break;
    case XL_EVENT_CLOSED:
        forget(event);
        xl_connection_free(event->connection);
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: serve ADDRESS:PORT\n");
        return 2;
    }
    const xl_addr local = address_parse(argv[1]);
    xl_config config;
    xl_config_init(&config);
    config.is_server = true;
    config.alpn = "hq-interop";
    config.scheme.enable_multipath = true;
    config.limits.max_datagram_frame_bytes = 1500;
    if (xl_udp_random_key(config.random_key) != 0) {
        fprintf(stderr, "the system gives no random numbers\n");
        return 1;
    }
    config.credentials =
        xl_credentials_self_signed_p256("example.org", config.random_key, (uint64_t)time(NULL) - 86400);
    int error = 0;
    xl_endpoint *endpoint = xl_endpoint_new(&config, xl_udp_now(), &error);
    xl_udp *udp = xl_udp_new();
    xl_addr bound;
    if (!endpoint || !udp || xl_udp_add_socket(udp, &local, &bound) < 0) {
        fprintf(stderr, "cannot listen on %s\n", argv[1]);
        return 1;
    }
    char text[64];
    printf("listening on %s\n", xl_addr_format(&bound, text, sizeof text));
    fflush(stdout);
    for (;;) {
        const uint64_t at = xl_endpoint_next_timeout(endpoint), now = xl_udp_now();
        struct pollfd wait = {.fd = xl_udp_fd(udp), .events = POLLIN};
        poll(&wait, 1, at == XL_NEVER ? -1 : at <= now ? 0 : (int)((at - now + 999) / 1000));
        xl_udp_receive(udp, endpoint, xl_udp_now());
        xl_endpoint_handle_timeout(endpoint, xl_udp_now());
        xl_event event;
        while (xl_endpoint_poll_event(endpoint, &event))
            handle(&event);
        xl_udp_flush(udp, endpoint, xl_udp_now());
    }
}
