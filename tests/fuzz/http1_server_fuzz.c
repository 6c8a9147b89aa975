/* The server's HTTP/1.1 service with its sockets, over the loopback interface, on a clock set by the input. Several
 * clients send any bytes, in pieces, and may not read. Properties: the service's data begin like a response;
 * connections and time limits end; no descriptor stays open. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/input.h"
#include "base/net.h"
#include "server/process.h"

#define CLIENTS    4
#define OPERATIONS 60
#define ROUNDS     64

typedef struct {
    int fd; /* -1: none */
    size_t received;
    char head[9];
} client;

typedef struct {
    server s;
    server_service *service;
    uint64_t now, connections;
    struct sockaddr_storage address;
    socklen_t address_len;
    client clients[CLIENTS];
} bench;

/* Serves all ready descriptors like the server's loop, until none is ready. */
static void serve(bench *b) {
    struct epoll_event *ready = b->s.ready;
    for (int round = 0; round < ROUNDS; round++) {
        int n = epoll_wait(b->s.epoll, ready, SERVER_MAX_EVENTS, 0);
        b->s.ready_count = n > 0 ? n : 0;
        for (int i = 0; i < b->s.ready_count; i++) {
            server_watch *watch = ready[i].data.ptr;
            if (watch)
                watch->ready(watch, ready[i].events, b->now);
        }
        b->s.ready_count = 0;
        server_http1_service.step(b->service, b->now);
        FUZZ_CHECK(server_http1_service.next_timeout(b->service) > b->now);
        if (n <= 0)
            return;
    }
}

static void hang_up(client *c) {
    const struct linger at_once = {.l_onoff = 1};
    if (c->fd >= 0) {
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(c->fd);
    }
    *c = (client){.fd = -1};
}

static void read_answers(client *c) {
    char buf[8192];
    ssize_t n;
    for (int i = 0; i < 8 && (n = recv(c->fd, buf, sizeof buf, MSG_DONTWAIT)) > 0; i++) {
        for (ssize_t k = 0; k < n && c->received < 9; k++)
            c->head[c->received++] = buf[k];
        if (c->received == 9)
            FUZZ_CHECK(memcmp(c->head, "HTTP/1.1 ", 9) == 0);
    }
}

static void write_request(client *c, fuzz_input *in) {
    static const char *const pieces[] = {"GET /synthetic/5000 HTTP/1.1\r\n",
                                         "HEAD /synthetic/9 HTTP/1.1\r\n",
                                         "GET /x HTTP/1.0\r\n",
                                         "Host: a\r\n",
                                         "Range: bytes=0-99\r\n",
                                         "Range: bytes=-5,7-8\r\n",
                                         "Connection: close\r\n",
                                         "Connection: keep-alive\r\n",
                                         "Content-Length: 5\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "\r\n",
                                         "\r\n\r\n",
                                         "GET /synthetic/300000 HTTP/1.1\r\nHost: b\r\n\r\n",
                                         "GET /synthetic/100 HTTP/1.1\r\nHost: b\r\n\r\n"};
    const size_t count = sizeof pieces / sizeof pieces[0];
    for (unsigned n = 1 + fuzz_u8(in) % 4; n > 0; n--) {
        uint8_t v = fuzz_u8(in);
        size_t len;
        const uint8_t *bytes = v < 0xc0 ? (const uint8_t *)pieces[v % count] : fuzz_bytes(in, 200, &len);
        len = v < 0xc0 ? strlen(pieces[v % count]) : len;
        if (len > 0)
            (void)!send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void open_client(bench *b, client *c) {
    c->fd = socket(b->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(c->fd >= 0 && connect(c->fd, (struct sockaddr *)&b->address, b->address_len) == 0);
}

static void operate(bench *b, fuzz_input *in) {
    uint8_t op = fuzz_u8(in);
    client *c = &b->clients[(op >> 4) % CLIENTS];
    if (c->fd < 0)
        open_client(b, c);
    switch (op % 8) {
    case 0:
    case 1:
    case 2:
        write_request(c, in);
        serve(b);
        break;
    case 3:
        read_answers(c);
        serve(b);
        break;
    case 4:
        b->now += 100000 * (uint64_t)fuzz_u8(in);
        serve(b);
        break;
    case 5:
        hang_up(c);
        serve(b);
        break;
    case 6:
        shutdown(c->fd, SHUT_WR);
        serve(b);
        break;
    default:
        write_request(c, in); /* not served yet */
    }
}

static void open_server(bench *b) {
    const catalogue_video video = {.bitrate_bps = 4000000, .fps_milli = 30000};
    xl_addr bound;
    char error[SERVER_ERROR_BYTES] = "";
    b->now = 1000000;
    b->s.config.http1_addr = (xl_addr){.family = 4, .ip = {127, 0, 0, 1}};
    b->s.connections = &b->connections;
    b->s.catalogue = catalogue_new(&video, NULL);
    b->s.epoll = epoll_create1(EPOLL_CLOEXEC);
    b->s.ready = calloc(SERVER_MAX_EVENTS, sizeof(struct epoll_event));
    FUZZ_CHECK(b->s.catalogue && b->s.epoll >= 0 && b->s.ready);
    b->service = server_http1_service.start(&b->s, b->now, &bound, error);
    FUZZ_CHECK(b->service != NULL);
    b->address_len = net_to_sockaddr(&bound, &b->address);
}

static void close_server(bench *b) {
    server_totals totals = {.paths = json_array()};
    server_http1_service.stop(b->service, b->now);
    server_http1_service.add_totals(b->service, &totals);
    fuzz_note_number(totals.connections);
    FUZZ_CHECK(totals.connections == b->connections);
    json_decref(totals.paths);
    server_http1_service.free(b->service);
    catalogue_free(b->s.catalogue);
    close(b->s.epoll);
    free(b->s.ready);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    bench *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b != NULL);
    int before = dup(0);
    close(before);
    open_server(b);
    for (int i = 0; i < CLIENTS; i++)
        b->clients[i].fd = -1;
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0; i++)
        operate(b, &in);
    b->now += 300000000; /* longer than any limit */
    serve(b);
    serve(b);
    for (int i = 0; i < CLIENTS; i++)
        hang_up(&b->clients[i]);
    close_server(b);
    free(b);
    int after = dup(0);
    close(after);
    FUZZ_CHECK(before == after);
    return 0;
}
