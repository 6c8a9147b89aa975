/* The socket driver on the loopback interface, with real endpoints and with plain sockets as peers. */

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit.h"
#include "xlink/udp.h"

#define LIMIT_US UINT64_C(20000000) /* wall-clock limit for steps that take milliseconds */

typedef struct {
    xl_udp *udp;
    xl_endpoint *endpoint;
    xl_credentials *credentials;
    xl_connection *connection;
    xl_addr bound;
    bool connected, writable;
    uint64_t received, sum;
    bool fin;
} host;

static xl_addr ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port) {
    return (xl_addr){.family = 4, .ip = {a, b, c, d}, .port = port};
}

static size_t largest_datagram = 0; /* of hosts created later; 0: default */

static host host_with(bool is_server, const xl_addr *local, xl_credentials *credentials) {
    host h = {.udp = xl_udp_new()};
    assert_non_null(h.udp);
    assert_int_equal(xl_udp_add_socket(h.udp, local, &h.bound), 0);
    assert_int_not_equal(h.bound.port, 0);
    xl_config config;
    xl_config_init(&config);
    assert_int_equal(xl_udp_random_key(config.random_key), 0);
    h.credentials = credentials;
    if (!credentials)
        h.credentials = is_server ? xl_credentials_self_signed("host.test", config.random_key, 1700000000)
                                  : xl_credentials_client(NULL);
    assert_non_null(h.credentials);
    config.is_server = is_server;
    config.alpn = "test";
    config.limits.max_udp_payload_bytes = largest_datagram;
    config.credentials = h.credentials;
    int error = 0;
    h.endpoint = xl_endpoint_new(&config, xl_udp_now(), &error);
    assert_non_null(h.endpoint);
    return h;
}

static host host_new(bool is_server, const xl_addr *local) {
    return host_with(is_server, local, NULL);
}

static void host_free(host *h) {
    xl_endpoint_free(h->endpoint);
    xl_udp_free(h->udp);
    xl_credentials_free(h->credentials);
}

static void read_all(host *h, uint64_t stream) {
    uint8_t buf[4096];
    ssize_t n = 1;
    while (n > 0 && !h->fin) {
        n = xl_stream_read(h->connection, stream, buf, sizeof buf, &h->fin);
        h->received += n > 0 ? (uint64_t)n : 0;
        for (ssize_t i = 0; i < n; i++)
            h->sum += buf[i];
    }
}

static void host_step(host *h) {
    uint64_t now = xl_udp_now();
    xl_udp_receive(h->udp, h->endpoint, now);
    if (xl_endpoint_next_timeout(h->endpoint) <= now)
        xl_endpoint_handle_timeout(h->endpoint, now);
    xl_event event;
    while (xl_endpoint_poll_event(h->endpoint, &event)) {
        if (event.type == XL_EVENT_CONNECTED) {
            h->connected = true;
            h->connection = event.connection;
        } else if (event.type == XL_EVENT_STREAM_READABLE) {
            read_all(h, event.stream_id);
        } else if (event.type == XL_EVENT_STREAM_WRITABLE) {
            h->writable = true;
        }
    }
    xl_udp_flush(h->udp, h->endpoint, xl_udp_now());
}

static void wait_for(host *a, host *b) {
    struct pollfd fds[2] = {{.fd = xl_udp_fd(a->udp), .events = POLLIN}, {.fd = xl_udp_fd(b->udp), .events = POLLIN}};
    (void)poll(fds, 2, 1);
    host_step(a);
    host_step(b);
}

static void connect_hosts(host *client, host *server, const xl_addr *to) {
    client->connection =
        xl_endpoint_connect(client->endpoint, "host.test", &client->bound, to, XL_TECH_WIFI, xl_udp_now());
    assert_non_null(client->connection);
    uint64_t end = xl_udp_now() + LIMIT_US;
    host_step(client);
    while (!(client->connected && server->connected) && xl_udp_now() < end)
        wait_for(client, server);
    assert_true(client->connected && server->connected);
}

static void transfer(host *from, host *to, uint64_t total) {
    uint64_t stream, sent = 0, sum = 0, end = xl_udp_now() + LIMIT_US;
    assert_int_equal(xl_stream_open(from->connection, true, &stream), 0);
    while (!to->fin && xl_udp_now() < end) {
        uint8_t buf[8192];
        while (sent < total) {
            size_t len = total - sent < sizeof buf ? (size_t)(total - sent) : sizeof buf;
            for (size_t i = 0; i < len; i++)
                buf[i] = (uint8_t)((sent + i) * 7 >> 3);
            ssize_t n = xl_stream_send(from->connection, stream, buf, len, sent + len == total, NULL);
            assert_true(n >= 0);
            for (ssize_t i = 0; i < n; i++)
                sum += buf[i];
            sent += (uint64_t)n;
            if ((size_t)n < len)
                break;
        }
        wait_for(from, to);
    }
    assert_true(to->fin);
    assert_int_equal(to->received, total);
    assert_int_equal(to->sum, sum);
}

TEST(a_transfer_over_loopback_arrives_whole) {
    xl_addr any = ipv4(0, 0, 0, 0, 0), local = ipv4(127, 0, 0, 1, 0);
    host server = host_new(true, &any), client = host_new(false, &local);
    xl_addr to = ipv4(127, 0, 0, 1, server.bound.port);
    connect_hosts(&client, &server, &to);
    const uint64_t total = 5000000;
    transfer(&client, &server, total);
    xl_udp_stats stats;
    xl_udp_get_stats(client.udp, &stats);
    assert_int_equal(stats.dark, 0);
    assert_true(stats.datagrams_sent >= total / 1452);
    assert_true(stats.send_calls < stats.datagrams_sent); /* several datagrams per call */
    host_free(&client);
    host_free(&server);
}

TEST(datagrams_grow_to_what_both_ends_allow) {
    const size_t largest[] = {1452, 8952};
    for (size_t i = 0; i < 2; i++) {
        xl_addr local = ipv4(127, 0, 0, 1, 0);
        largest_datagram = largest[i];
        host server = host_new(true, &local), client = host_new(false, &local);
        largest_datagram = 0;
        connect_hosts(&client, &server, &server.bound);
        transfer(&client, &server, 5000000);
        xl_path_stats stats;
        assert_int_equal(0, xl_connection_path_stats(client.connection, 0, &stats));
        assert_int_equal(largest[i], stats.mtu_bytes);
        host_free(&client);
        host_free(&server);
    }
}

/* A certificate of 2 kB, so that a server's first flight takes more than one datagram. */
static xl_credentials *large_credentials(void) {
    const uint8_t serial = 1;
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
    gnutls_datum_t cert_pem, key_pem;
    assert_int_equal(0, gnutls_x509_privkey_init(&key));
    assert_int_equal(0, gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, 256, 0));
    assert_int_equal(0, gnutls_x509_crt_init(&cert));
    for (int i = 0; i < 40; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, "a-name-of-forty-letters-is-rather-%02d.test", i);
        assert_int_equal(
            0, gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, name, (unsigned)len, GNUTLS_FSAN_APPEND));
    }
    gnutls_x509_crt_set_version(cert, 3);
    gnutls_x509_crt_set_serial(cert, &serial, sizeof serial);
    gnutls_x509_crt_set_activation_time(cert, 1700000000);
    gnutls_x509_crt_set_expiration_time(cert, 4000000000);
    gnutls_x509_crt_set_key(cert, key);
    assert_int_equal(0, gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0));
    assert_int_equal(0, gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &cert_pem));
    assert_int_equal(0, gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem));
    xl_credentials *made = xl_credentials_server((const char *)cert_pem.data, (const char *)key_pem.data);
    assert_non_null(made);
    gnutls_free(cert_pem.data);
    gnutls_free(key_pem.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
    return made;
}

/* Delivers a first packet as if from port 0, to which the kernel cannot send (EINVAL). */
static void begin_from_port_0(host *client, host *server) {
    uint8_t packet[1500];
    xl_datagram d;
    uint64_t now = xl_udp_now();
    xl_connection *c =
        xl_endpoint_connect(client->endpoint, "host.test", &client->bound, &server->bound, XL_TECH_WIFI, now);
    assert_non_null(c);
    size_t len = xl_endpoint_transmit(client->endpoint, packet, sizeof packet, &d, now);
    assert_true(len >= 1200);
    d = (xl_datagram){.local = server->bound, .remote = client->bound, .len = len};
    d.remote.port = 0;
    xl_endpoint_receive(server->endpoint, &d, packet, now);
    xl_udp_flush(server->udp, server->endpoint, now);
    xl_connection_free(c);
}

TEST(a_client_that_cannot_be_answered_takes_nothing_from_the_others) {
    uint64_t segmented[2];
    for (int attacked = 0; attacked < 2; attacked++) {
        xl_addr local = ipv4(127, 0, 0, 1, 0);
        xl_credentials *large = large_credentials();
        host server = host_with(true, &local, large), client = host_new(false, &local);
        xl_udp_stats stats;
        if (attacked) {
            begin_from_port_0(&client, &server);
            xl_udp_get_stats(server.udp, &stats);
            assert_true(stats.dark > 1); /* it was segmented at first */
            assert_int_equal(EINVAL, stats.last_dark_errno);
        }
        connect_hosts(&client, &server, &server.bound);
        transfer(&server, &client, 2000000);
        xl_udp_get_stats(server.udp, &stats);
        segmented[attacked] = stats.segmented_sends;
        host_free(&client);
        host_free(&server);
    }
    assert_int_equal(segmented[0] > 0, segmented[1] > 0);
}

/* A long header packet of an unknown version, large enough for Version Negotiation. */
static void fill_unknown_version(uint8_t *packet, size_t len) {
    static const uint8_t head[] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9};
    memset(packet, 0, len);
    memcpy(packet, head, sizeof head);
}

static int connected_socket(const xl_addr *to) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    memcpy(&sa.sin_addr, to->ip, 4);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

TEST(a_reply_leaves_from_the_address_that_was_spoken_to) {
    xl_addr any = ipv4(0, 0, 0, 0, 0);
    host server = host_new(true, &any);
    for (uint8_t last = 1; last <= 3; last++) {
        xl_addr to = ipv4(127, 0, 0, last, server.bound.port);
        int fd = connected_socket(&to); /* receives from `to` only */
        uint8_t packet[1200];
        fill_unknown_version(packet, sizeof packet);
        assert_int_equal(send(fd, packet, sizeof packet, 0), sizeof packet);
        struct pollfd wake = {.fd = xl_udp_fd(server.udp), .events = POLLIN};
        assert_int_equal(poll(&wake, 1, 5000), 1);
        host_step(&server);
        struct pollfd answer = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&answer, 1, 5000), 1);
        ssize_t n = recv(fd, packet, sizeof packet, 0);
        assert_true(n > 7);
        assert_memory_equal(packet + 1, "\0\0\0\0", 4); /* Version Negotiation */
        close(fd);
    }
    host_free(&server);
}

TEST(two_sockets_send_from_their_own_addresses) {
    xl_addr any = ipv4(0, 0, 0, 0, 0), first = ipv4(127, 0, 0, 1, 0), second = ipv4(127, 0, 0, 2, 0), bound;
    host server = host_new(true, &any), client = host_new(false, &first);
    assert_int_equal(xl_udp_add_socket(client.udp, &second, &bound), 1);
    assert_memory_equal(bound.ip, second.ip, 4);
    xl_addr to = ipv4(127, 0, 0, 1, server.bound.port);
    client.bound = bound; /* the connection starts on the second socket */
    connect_hosts(&client, &server, &to);
    xl_path_stats path;
    assert_int_equal(xl_connection_path_stats(server.connection, 0, &path), 0);
    assert_true(xl_addr_equal(&path.remote, &bound));
    assert_memory_equal(path.local.ip, to.ip, 4);
    host_free(&client);
    host_free(&server);
}

TEST(a_dark_path_is_not_an_error) {
    xl_addr local = ipv4(127, 0, 0, 1, 0), nowhere = ipv4(203, 0, 113, 1, 443);
    host client = host_new(false, &local);
    client.connection =
        xl_endpoint_connect(client.endpoint, "host.test", &client.bound, &nowhere, XL_TECH_WIFI, xl_udp_now());
    assert_non_null(client.connection);
    host_step(&client);
    xl_udp_stats stats;
    xl_udp_get_stats(client.udp, &stats);
    assert_true(stats.dark > 0);
    assert_int_equal(stats.kept, 0);
    assert_int_equal(stats.datagrams_sent, 0);
    host_free(&client);
}

TEST(a_port_where_nobody_listens_is_noticed) {
    xl_addr local = ipv4(127, 0, 0, 1, 0), port;
    xl_udp *silent = xl_udp_new();
    assert_non_null(silent);
    assert_int_equal(xl_udp_add_socket(silent, &local, &port), 0);
    xl_udp_free(silent); /* nobody listens on this port now */
    host client = host_new(false, &local);
    client.connection =
        xl_endpoint_connect(client.endpoint, "host.test", &client.bound, &port, XL_TECH_WIFI, xl_udp_now());
    xl_udp_stats stats = {0};
    uint64_t end = xl_udp_now() + LIMIT_US;
    host_step(&client);
    while (stats.refused == 0 && xl_udp_now() < end) {
        struct pollfd wake = {.fd = xl_udp_fd(client.udp), .events = POLLIN};
        (void)poll(&wake, 1, 100);
        host_step(&client);
        xl_udp_get_stats(client.udp, &stats);
    }
    assert_true(stats.refused > 0);
    host_free(&client);
}

TEST(an_address_in_use_or_not_here_is_refused) {
    xl_udp *udp = xl_udp_new();
    assert_non_null(udp);
    xl_addr local = ipv4(127, 0, 0, 1, 0), bound, again, foreign = ipv4(203, 0, 113, 1, 0), unset = {0};
    assert_int_equal(xl_udp_add_socket(udp, &local, &bound), 0);
    assert_int_equal(xl_udp_add_socket(udp, &bound, &again), -EADDRINUSE);
    assert_int_equal(xl_udp_add_socket(udp, &foreign, &again), -EADDRNOTAVAIL);
    assert_int_equal(xl_udp_add_socket(udp, &unset, &again), -EAFNOSUPPORT);
    assert_int_equal(xl_udp_add_socket(udp, &local, NULL), 1); /* any other port */
    xl_udp_free(udp);
}

typedef struct {
    size_t count, len[4];
    xl_addr from, to;
    uint8_t first[4];
} received;

static void take(void *user, const xl_datagram *d, uint8_t *data) {
    received *r = user;
    assert_in_range(r->count, 0, 3);
    r->len[r->count] = d->len;
    r->first[r->count++] = data[0];
    r->from = d->remote;
    r->to = d->local;
}

TEST(datagrams_of_another_transport_are_carried) {
    xl_addr local = ipv4(127, 0, 0, 1, 0), wildcard = ipv4(0, 0, 0, 0, 0), from, to;
    xl_udp *sender = xl_udp_new(), *receiver = xl_udp_new();
    assert_int_equal(xl_udp_add_socket(sender, &local, &from), 0);
    assert_int_equal(xl_udp_add_socket(receiver, &wildcard, &to), 0);
    to.ip[0] = 127, to.ip[3] = 1;
    static const size_t lens[] = {1200, 1200, 700, 1300};
    for (size_t i = 0; i < 4; i++) {
        uint8_t data[1300] = {(uint8_t)(i + 1)};
        const xl_datagram d = {.local = from, .remote = to, .len = lens[i]};
        assert_true(xl_udp_has_room(sender));
        xl_udp_queue(sender, &d, data); /* copies data */
    }
    xl_udp_send(sender);
    received r = {0};
    for (uint64_t end = xl_udp_now() + LIMIT_US; r.count < 4 && xl_udp_now() < end;) {
        struct pollfd wake = {.fd = xl_udp_fd(receiver), .events = POLLIN};
        (void)poll(&wake, 1, 100);
        xl_udp_receive_each(receiver, take, &r);
    }
    assert_memory_equal(r.len, lens, sizeof lens);
    assert_memory_equal(r.first, ((uint8_t[]){1, 2, 3, 4}), 4);
    assert_true(xl_addr_equal(&r.from, &from));
    assert_true(xl_addr_equal(&r.to, &to));
    xl_udp_free(sender);
    xl_udp_free(receiver);
}

TEST_MAIN(NULL, NULL)
