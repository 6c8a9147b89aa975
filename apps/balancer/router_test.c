#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "balancer/router.h"

#define CIDS 3000

static uint64_t state_of_random = 1;

static uint8_t random_octet(void) {
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint8_t)(state_of_random >> 56);
}

static void random_bytes(uint8_t *out, size_t len) {
    for (size_t i = 0; i < len; i++)
        out[i] = random_octet();
}

static lb_file file_of(size_t servers) {
    lb_file f = {.config_count = 2, .server_id_bytes = 2, .server_count = servers, .secret = {1, 2, 3}};
    f.config[0] = (xl_lb_config){.rotation = 1, .server_id_bytes = 2, .nonce_bytes = 6, .has_key = true, .key = {7}};
    f.config[1] = (xl_lb_config){.rotation = 0, .server_id_bytes = 2, .nonce_bytes = 10};
    for (size_t i = 0; i < servers; i++) {
        f.server[i] = (lb_server){.id = {0xa0, (uint8_t)i}};
        f.server[i].address = (xl_addr){.family = 4, .ip = {192, 0, 2, (uint8_t)i}, .port = 443};
    }
    return f;
}

static const xl_addr client = {.family = 4, .ip = {198, 51, 100, 7}, .port = 5000};

static void initial(uint8_t data[1200], const uint8_t *cid, size_t len) {
    memset(data, 0, 1200);
    memcpy(data, "\xc0\0\0\0\1", 5);
    data[5] = (uint8_t)len;
    memcpy(data + 6, cid, len);
}

static route ask(router *r, const uint8_t *cid, uint64_t now) {
    uint8_t data[1200];
    initial(data, cid, 8);
    return router_route(r, &client, data, sizeof data, now);
}

TEST(a_cid_names_its_server_in_every_configuration) {
    lb_file f = file_of(5);
    router *r = router_new(&f);
    for (int config = 0; config < 2; config++) {
        int error;
        xl_lb *lb = xl_lb_new(&f.config[config], 1, 1, &error);
        for (size_t i = 0; i < 200; i++) {
            uint8_t nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES], data[1200] = {0x40};
            size_t server = i % 5, len = config == 0 ? 10 : 14;
            random_bytes(nonce, sizeof nonce);
            random_bytes(cid, sizeof cid);
            assert_int_equal(len - 1, xl_lb_encode(lb, f.server[server].id, nonce, random_octet(), cid));
            random_bytes(data + 1, 40);
            memcpy(data + 1, cid, len);
            data[0] = i % 2 ? 0x40 : 0; /* the QUIC bit may be random */
            route short_header = router_route(r, &client, data, 41, 0);
            initial(data, cid, len);
            data[0] = 0xe0; /* Handshake: any size */
            route long_header = router_route(r, &client, data, 60, 0);
            assert_int_equal(ROUTE_BY_CID, short_header.kind);
            assert_int_equal(server, short_header.server);
            assert_int_equal(ROUTE_BY_CID, long_header.kind);
            assert_int_equal(server, long_header.server);
        }
        xl_lb_free(lb);
    }
    router_free(r);
}

TEST(a_change_of_servers_moves_their_own_share_only) {
    lb_file four = file_of(4), five = file_of(5);
    router *before = router_new(&four), *after = router_new(&five);
    unsigned share[5] = {0}, to_new = 0;
    for (int i = 0; i < CIDS; i++) {
        uint8_t cid[8];
        random_bytes(cid, sizeof cid);
        cid[0] |= 0xe0;
        route a = ask(before, cid, 0), b = ask(after, cid, 0);
        assert_int_equal(ROUTE_BY_HASH, a.kind);
        share[b.server]++;
        to_new += b.server == 4;
        if (b.server != 4)
            assert_int_equal(a.server, b.server);
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(share[i], CIDS / 5 - 100, CIDS / 5 + 100);
    assert_int_equal(share[4], to_new);
    router_free(before);
    router_free(after);
}

TEST(new_clients_go_to_servers_that_are_up_and_to_all_when_none_is) {
    lb_file f = file_of(3);
    router *r = router_new(&f);
    uint8_t cid[8];
    for (int i = 0; i < CIDS / 10; i++) {
        random_bytes(cid, sizeof cid);
        cid[0] |= 0xe0;
        route before = ask(r, cid, 0);
        router_set_down(r, 1, true);
        route during = ask(r, cid, 0); /* also for an unanswered handshake on server 1 */
        assert_int_equal(during.kind, ROUTE_BY_HASH);
        assert_true(during.server != 1);
        if (before.server != 1)
            assert_int_equal(during.server, before.server);
        router_set_down(r, 1, false);
        assert_int_equal(ask(r, cid, 0).server, during.server); /* the server of the handshake */
        for (size_t k = 0; k < 3; k++)
            router_set_down(r, k, true);
        assert_int_equal(ask(r, cid, 0).server, before.server);
        for (size_t k = 0; k < 3; k++)
            router_set_down(r, k, false);
    }
    router_free(r);
}

TEST(a_handshake_under_way_stays_where_it_is) {
    lb_file four = file_of(4), five = file_of(5), without = file_of(4);
    size_t moved[LB_SERVERS_MAX];
    router *r = router_new(&four);
    uint8_t cid[200][8];
    size_t first[200];
    for (int i = 0; i < 200; i++) {
        random_bytes(cid[i], 8);
        cid[i][0] |= 0xe0;
        first[i] = ask(r, cid[i], 0).server;
    }
    assert_true(router_update(r, &five, moved));
    for (int i = 0; i < 200; i++)
        assert_int_equal(first[i], ask(r, cid[i], 1000000).server);
    /* Server 0 is removed; the indices of others decrease. */
    memmove(&without.server[0], &five.server[1], 4 * sizeof five.server[0]);
    assert_true(router_update(r, &without, moved));
    assert_int_equal(SIZE_MAX, moved[0]);
    assert_int_equal(2, moved[3]);
    for (int i = 0; i < 200; i++) {
        size_t now = ask(r, cid[i], 2000000).server;
        assert_true(now < 4);
        if (first[i] > 0)
            assert_int_equal(first[i] - 1, now);
    }
    unsigned back = 0; /* after the choices have expired, the new server gets its share */
    for (int i = 0; i < 200; i++)
        back += ask(r, cid[i], 3600000000).server == 3;
    assert_in_range(back, 20, 80);
    router_free(r);
}

TEST(a_draining_server_keeps_what_it_has) {
    lb_file f = file_of(2);
    f.server[1].drain = true;
    router *r = router_new(&f);
    int error;
    xl_lb *lb = xl_lb_new(f.config, 1, 1, &error);
    uint8_t cid[XL_MAX_CID_BYTES], nonce[XL_LB_NONCE_MAX] = {1}, data[60] = {0x40};
    for (int i = 0; i < 50; i++) {
        random_bytes(cid, 8);
        cid[0] |= 0xe0;
        assert_int_equal(0, ask(r, cid, 0).server);
    }
    xl_lb_encode(lb, f.server[1].id, nonce, 0, cid);
    memcpy(data + 1, cid, 9);
    route to_it = router_route(r, &client, data, sizeof data, 0);
    assert_int_equal(ROUTE_BY_CID, to_it.kind);
    assert_int_equal(1, to_it.server);
    f.server[0].drain = true;
    size_t moved[LB_SERVERS_MAX];
    assert_true(router_update(r, &f, moved));
    random_bytes(cid, 8);
    cid[0] |= 0xe0;
    assert_int_equal(ROUTE_DROP_NO_SERVER, ask(r, cid, 0).kind);
    xl_lb_free(lb);
    router_free(r);
}

TEST(what_no_server_would_take_is_dropped) {
    lb_file f = file_of(2);
    router *r = router_new(&f);
    uint8_t cid[20] = {0xff, 1, 2}, data[1500];
    initial(data, cid, 8);
    assert_int_equal(ROUTE_DROP_SMALL, router_route(r, &client, data, 1199, 0).kind);
    assert_int_equal(ROUTE_BY_HASH, router_route(r, &client, data, 1200, 0).kind);
    data[0] = 0xe0;
    assert_int_equal(ROUTE_BY_HASH, router_route(r, &client, data, 60, 0).kind); /* Handshake */
    memcpy(data + 1, "\x6b\x33\x43\xcf", 4);
    data[0] = 0xf0;
    assert_int_equal(ROUTE_BY_HASH, router_route(r, &client, data, 60, 0).kind); /* Handshake of version 2 */
    data[0] = 0xe0;
    assert_int_equal(ROUTE_DROP_SMALL, router_route(r, &client, data, 60, 0).kind); /* 0-RTT of version 2 */
    data[1] = 0x1a; /* another version: too small for Version Negotiation */
    assert_int_equal(ROUTE_DROP_SMALL, router_route(r, &client, data, 60, 0).kind);
    assert_int_equal(ROUTE_BY_HASH, router_route(r, &client, data, 1200, 0).kind);
    memset(data + 1, 0, 4);
    assert_int_equal(ROUTE_DROP_MALFORMED,
                     router_route(r, &client, data, 1200, 0).kind); /* Version Negotiation, which no client sends */
    initial(data, cid, 20);
    data[5] = 21;
    assert_int_equal(ROUTE_DROP_MALFORMED, router_route(r, &client, data, 1200, 0).kind);
    data[5] = 20;
    assert_int_equal(ROUTE_DROP_MALFORMED, router_route(r, &client, data, 25, 0).kind);
    assert_int_equal(ROUTE_DROP_MALFORMED, router_route(r, &client, data, 0, 0).kind);
    router_free(r);
}

TEST(any_bytes_are_routed_or_dropped) {
    lb_file f = file_of(3);
    router *r = router_new(&f);
    for (int i = 0; i < 20000; i++) {
        size_t len = (size_t)random_octet() + (i % 8 ? 0 : 1100);
        uint8_t *data = malloc(len + 1); /* of exact size, for the sanitizer */
        random_bytes(data, len);
        uint8_t *exact = malloc(len ? len : 1);
        memcpy(exact, data, len);
        route got = router_route(r, &client, exact, len, (uint64_t)i);
        assert_true(got.kind < ROUTE_KINDS && got.server < 3);
        free(exact);
        free(data);
    }
    router_free(r);
}

TEST_MAIN(NULL, NULL)
