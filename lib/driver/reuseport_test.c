/* Compares the kernel's choice among the sockets of a group with xl_deployment_worker_of(). */

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit.h"
#include "transport/testing/random.h"
#include "xlink/deployment.h"
#include "xlink/udp.h"

#define WORKERS  5
#define LIMIT_MS 5000

typedef struct {
    xl_deployment d;
    int fds[WORKERS], client;
    xl_random random;
} group;

static void group_init(group *g) {
    const xl_lb_config c[] = {{.rotation = 3, .server_id_bytes = 2, .nonce_bytes = 6, .has_key = true, .key = {9}},
                              {.rotation = 0, .server_id_bytes = 2, .nonce_bytes = 16}};
    const xl_addr local = {.family = 4, .ip = {127, 0, 0, 1}};
    xl_addr bound;
    int error;
    *g = (group){.d = {.lb = xl_lb_new(c, 2, 1, &error), .workers = WORKERS}};
    assert_non_null(g->d.lb);
    xl_random_seed(&g->random, 11);
    uint8_t secret[XL_STATIC_SECRET_BYTES];
    xl_random_bytes(&g->random, secret, sizeof secret);
    assert_int_equal(0, xl_static_keys_from(secret, &g->d.keys));
    assert_int_equal(0, xl_udp_open_group(&local, &g->d, g->fds, &bound));
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(bound.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    g->client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, connect(g->client, (struct sockaddr *)&to, sizeof to));
}

static void group_free(group *g) {
    for (int i = 0; i < WORKERS; i++)
        close(g->fds[i]);
    close(g->client);
    xl_lb_free((xl_lb *)(uintptr_t)g->d.lb);
}

/* Sends a datagram and returns the index of the socket that received it. */
static unsigned chosen(const group *g, const uint8_t *data, size_t len) {
    assert_int_equal(len, send(g->client, data, len, 0));
    struct pollfd wait[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        wait[i] = (struct pollfd){.fd = g->fds[i], .events = POLLIN};
    assert_int_equal(1, poll(wait, WORKERS, LIMIT_MS));
    unsigned at = 0;
    while (!(wait[at].revents & POLLIN))
        at++;
    uint8_t got[2048];
    assert_int_equal(len, recv(g->fds[at], got, sizeof got, 0));
    return at;
}

static void put_header(uint8_t *data, bool is_long, const uint8_t *cid, size_t len) {
    data[0] = is_long ? 0xc0 : 0x40;
    if (is_long) {
        memcpy(data + 1, "\0\0\0\1", 4);
        data[5] = (uint8_t)len;
    }
    memcpy(data + (is_long ? 6 : 1), cid, len);
}

#define GROUP_TEST(name) TEST_MADE(name, group, g, group_init, group_free)

GROUP_TEST(the_kernel_follows_the_process_octet) {
    for (unsigned i = 0; i < 500; i++) {
        uint8_t nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES], data[80];
        xl_random_bytes(&g->random, nonce, sizeof nonce);
        xl_random_bytes(&g->random, data, sizeof data);
        g->d.worker = i % WORKERS;
        size_t len = xl_deployment_make_cid(&g->d, nonce, (uint8_t)i, cid);
        put_header(data, i % 2, cid, len);
        assert_int_equal(g->d.worker, chosen(g, data, sizeof data));
    }
}

GROUP_TEST(the_kernel_and_the_endpoint_agree_on_any_cid) {
    unsigned share[WORKERS] = {0};
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t cid[XL_MAX_CID_BYTES], data[80];
        xl_random_bytes(&g->random, cid, sizeof cid);
        xl_random_bytes(&g->random, data, sizeof data);
        bool is_long = i % 2;
        size_t len = is_long ? 8 + xl_random_next(&g->random) % 13 : xl_deployment_cid_bytes(&g->d, cid[0]);
        put_header(data, is_long, cid, len);
        unsigned at = chosen(g, data, sizeof data);
        assert_int_equal(xl_deployment_worker_of(&g->d, cid, len), at);
        share[at]++;
    }
    for (int i = 0; i < WORKERS; i++)
        assert_in_range(share[i], 300, 500);
}

GROUP_TEST(any_datagram_reaches_some_worker) {
    for (size_t len = 1; len < 60; len++) {
        uint8_t data[60];
        xl_random_bytes(&g->random, data, sizeof data);
        assert_true(chosen(g, data, len) < WORKERS);
    }
}

GROUP_TEST(a_datagram_finds_its_worker_from_any_address) {
    uint8_t nonce[XL_LB_NONCE_MAX] = {1}, cid[XL_MAX_CID_BYTES], data[80] = {0};
    struct sockaddr_in to;
    socklen_t to_len = sizeof to;
    assert_int_equal(0, getpeername(g->client, (struct sockaddr *)&to, &to_len));
    g->d.worker = 3;
    size_t cid_len = xl_deployment_make_cid(&g->d, nonce, 7, cid);
    put_header(data, false, cid, cid_len);
    for (uint32_t host = 1; host < 50; host++) {
        struct sockaddr_in from = {.sin_family = AF_INET};
        from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
        close(g->client);
        g->client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(0, bind(g->client, (struct sockaddr *)&from, sizeof from));
        assert_int_equal(0, connect(g->client, (struct sockaddr *)&to, sizeof to));
        assert_int_equal(3, chosen(g, data, sizeof data));
    }
}

TEST_MAIN(NULL, NULL)
